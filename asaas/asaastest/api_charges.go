package asaastest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// listCharges lists the charges that are not removed, newest first.
func (f *Fake) listCharges(of *account, r *http.Request) (any, error) {
	q := r.URL.Query()
	if status := asaas.PaymentStatus(q.Get("status")); status != "" && (!status.Known() || status == asaas.PaymentStatusAuthorized) {
		return nil, refused(http.StatusBadRequest, "invalid_status", "O status informado é inválido.")
	}
	var found []*charge
	for _, c := range of.charges {
		if !c.is.Deleted && c.isChosen(q) {
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

// isChosen reports whether a query asks for the charge.
func (c *charge) isChosen(q url.Values) bool {
	status := q.Get("status")
	reference := q.Get("externalReference")
	return (status == "" || status == string(c.is.Status)) &&
		(reference == "" || reference == c.is.ExternalReference.Or("")) &&
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

func (f *Fake) getCharge(of *account, r *http.Request) (any, error) {
	c := of.charges[r.PathValue("id")]
	if c == nil {
		return nil, refused(http.StatusNotFound, "not_found", "A cobrança informada não foi encontrada.")
	}
	return c.data, nil
}

// listChargebacks lists the chargebacks of charges, newest first.
func (f *Fake) listChargebacks(of *account, r *http.Request) (any, error) {
	var found []*charge
	for _, c := range of.charges {
		if dispute, ok := c.is.Chargeback.Get(); ok && isWithin(dispute.DisputeStartDate.Or(""), r.URL.Query(), "originDisputeDate") {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *charge) int { return b.order - a.order })
	disputes := make([]asaas.Chargeback, 0, len(found))
	for _, c := range found {
		disputes = append(disputes, c.is.Chargeback.Or(asaas.Chargeback{}))
	}
	return pageOf(r, disputes)
}

// getAccountStatus shows the account as one that is approved.
func (f *Fake) getAccountStatus(of *account, _ *http.Request) (any, error) {
	return map[string]string{
		"id": of.ID, "commercialInfo": "APPROVED", "bankAccountInfo": "APPROVED", "documentation": "APPROVED", "general": "APPROVED",
	}, nil
}

// charge is a charge as the API shows it, after its newest event.
type charge struct {
	order int // among all charges
	at    asaas.DateTime
	data  json.RawMessage
	is    asaas.Payment

	here   asaas.Money // the part of its money that is in the account
	came   bool        // its money, ever
	credit asaas.Money // of its anticipation, to be taken off when its money comes
}

// learn has the API show a charge as an event has it, whether a webhook wants the
// event or not.
func (a *account) learn(e idem.Event) {
	var said struct {
		DateCreated asaas.DateTime  `json:"dateCreated"`
		Account     asaas.Account   `json:"account"`
		Payment     json.RawMessage `json:"payment"`
	}
	var p asaas.Payment
	err := json.Unmarshal(e.Payload, &said)
	a.ID = said.Account.ID.Or(a.ID)
	if err != nil || json.Unmarshal(said.Payment, &p) != nil || p.ID == "" {
		return // an event about something else
	}
	known := a.charges[p.ID]
	if known == nil {
		known = &charge{order: len(a.charges)}
		a.charges[p.ID] = known
	}
	if known.data == nil || cmp.Compare(said.DateCreated, known.at) >= 0 { // else an older event is emitted late
		known.at, known.data, known.is = said.DateCreated, said.Payment, p
		a.book(known)
	}
}
