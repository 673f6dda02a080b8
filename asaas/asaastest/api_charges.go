package asaastest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
)

// charge is a charge as the API shows it, after its newest event.
type charge struct {
	order int // among all charges
	at    asaas.DateTime
	data  json.RawMessage
	is    asaas.Payment
}

// transaction is an entry of the account's statement.
type transaction struct {
	ID        string      `json:"id"`
	Type      string      `json:"type"`
	Value     asaas.Money `json:"value"`
	Date      asaas.Date  `json:"date"`
	PaymentID string      `json:"paymentId"`
}

// learn has the API show a charge as an event has it, whether a webhook wants the
// event or not.
func (f *Fake) learn(e event) {
	var said struct {
		DateCreated asaas.DateTime  `json:"dateCreated"`
		Payment     json.RawMessage `json:"payment"`
	}
	var p asaas.Payment
	if json.Unmarshal(e.body, &said) != nil || json.Unmarshal(said.Payment, &p) != nil || p.ID == "" {
		return // an event about something else
	}
	known := f.charges[p.ID]
	if known == nil {
		known = &charge{order: len(f.charges)}
		f.charges[p.ID] = known
	}
	f.book(e, said.DateCreated, p)
	if known.data == nil || cmp.Compare(said.DateCreated, known.at) >= 0 { // else an older event is emitted late
		known.at, known.data, known.is = said.DateCreated, said.Payment, p
	}
}

// book enters a movement of money into the statement.
func (f *Fake) book(e event, at asaas.DateTime, p asaas.Payment) {
	value := p.Value
	kind := map[asaas.EventType]string{
		asaas.EventPaymentReceived: "PAYMENT_RECEIVED", asaas.EventPaymentRefunded: "PAYMENT_REVERSAL",
		asaas.EventPaymentPartiallyRefunded: "PAYMENT_REVERSAL", asaas.EventPaymentChargebackRequested: "CHARGEBACK",
	}[e.kind]
	if kind == "" || p.Status == asaas.PaymentStatusReceivedInCash {
		return
	}
	if refunds := p.Refunds.Or(nil); kind == "PAYMENT_REVERSAL" && len(refunds) > 0 {
		value = refunds[len(refunds)-1].Value.Or(value)
	}
	if kind != "PAYMENT_RECEIVED" {
		value = asaas.Money{}.Sub(value)
	}
	day, _, _ := strings.Cut(string(at), " ")
	f.statement = append(f.statement, transaction{fmt.Sprintf("fint_%012d", len(f.statement)+1), kind, value, asaas.Date(day), p.ID})
}

// page is a page of a list.
type page[T any] struct {
	Object     string `json:"object"`
	HasMore    bool   `json:"hasMore"`
	TotalCount int    `json:"totalCount"`
	Limit      int    `json:"limit"`
	Offset     int    `json:"offset"`
	Data       []T    `json:"data"`
}

func pageOf[T any](r *http.Request, all []T) (any, error) {
	offset, err1 := number(r, "offset", 0, 0, 1<<31-1)
	limit, err2 := number(r, "limit", 10, 1, 100)
	if err1 != nil || err2 != nil {
		return nil, refused(http.StatusBadRequest, "invalid_pagination", "Informe offset a partir de 0 e limit entre 1 e 100.")
	}
	end := min(offset+limit, len(all))
	return page[T]{"list", end < len(all), len(all), limit, offset, append([]T{}, all[min(offset, end):end]...)}, nil
}

// listCharges lists the charges that are not removed, newest first.
func (f *Fake) listCharges(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	var found []*charge
	for _, c := range f.charges {
		if !c.is.Deleted && c.isChosen(r.URL.Query()) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *charge) int { return b.order - a.order })
	bodies := make([]json.RawMessage, 0, len(found))
	for _, c := range found {
		bodies = append(bodies, c.data)
	}
	return pageOf(r, bodies)
}

func (c *charge) isChosen(q url.Values) bool {
	status := q.Get("status")
	return (status == "" || status == string(c.is.Status)) &&
		isWithin(c.is.DateCreated, q, "dateCreated") &&
		isWithin(c.is.PaymentDate.Or(""), q, "paymentDate") &&
		isWithin(c.is.EstimatedCreditDate.Or(""), q, "estimatedCreditDate")
}

// isWithin reports whether a day, spelled yyyy-MM-dd, is in the range that a query
// asks for. No day is in none.
func isWithin(day asaas.Date, q url.Values, name string) bool {
	from, until := q.Get(name+"[ge]"), q.Get(name+"[le]")
	if day == "" {
		return from == "" && until == ""
	}
	return string(day) >= from && (until == "" || string(day) <= until)
}

func (f *Fake) getCharge(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	c := f.charges[r.PathValue("id")]
	if c == nil {
		return nil, refused(http.StatusNotFound, "not_found", "A cobrança informada não foi encontrada.")
	}
	return c.data, nil
}

// listTransactions lists the statement, newest first.
func (f *Fake) listTransactions(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	from, until := r.URL.Query().Get("startDate"), r.URL.Query().Get("finishDate")
	found := slices.DeleteFunc(slices.Clone(f.statement), func(t transaction) bool {
		return string(t.Date) < from || until != "" && string(t.Date) > until
	})
	slices.Reverse(found)
	return pageOf(r, found)
}
