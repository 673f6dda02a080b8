package asaas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// scan is one way to find charges. page returns those of the page at the cursor r.next,
// and moves it on.
type scan struct {
	name string
	page func(ctx context.Context) (page scanned, err error)
}

// scanned is a page of a scan.
type scanned struct {
	payments []*Payment
	rows     []string // the ids that the page lists
	total    int      // on all pages; 0 if that is not known
	more     bool
}

// found is a charge, and the scan that found it.
type found struct {
	payment *Payment
	by      string
}

// endless are the states that few charges are in, and that may be older than the
// gap. They have no date to choose by.
var endless = []PaymentStatus{
	PaymentStatusRefundRequested, PaymentStatusRefundInProgress,
	PaymentStatusChargebackRequested, PaymentStatusChargebackDispute, PaymentStatusAwaitingChargebackReversal,
	PaymentStatusDunningRequested, PaymentStatusDunningReceived,
}

// allScans are in the order of their costs: the scan that needs a call for each charge comes
// last, when most charges are known.
func (r *reconciliation) allScans() []scan {
	from, until := r.window()
	out := []scan{
		{"created", r.list(listPaymentsQuery{DateCreatedGe: from, DateCreatedLe: until})},
		{"paid", r.list(listPaymentsQuery{PaymentDateGe: from, PaymentDateLe: until})},
		{"confirmed", r.list(listPaymentsQuery{Status: string(PaymentStatusConfirmed), EstimatedCreditDateGe: from})},
	}
	for _, s := range endless {
		out = append(out, scan{string(s), r.list(listPaymentsQuery{Status: string(s)})})
	}
	return append(out, scan{"statement", r.statement}, scan{"open", r.waitedFor})
}

// window returns the first and the last day of the gap, with one more before.
func (r *reconciliation) window() (from, until string) {
	return dayIn(r.Since.AddDate(0, 0, -1)), dayIn(r.Until)
}

func dayIn(t time.Time) string { return t.In(Brasilia()).Format(time.DateOnly) }

// list returns a scan of the list of charges.
func (r *reconciliation) list(query listPaymentsQuery) func(context.Context) (scanned, error) {
	return func(ctx context.Context) (page scanned, err error) {
		query.Offset, query.Limit = r.next.Offset, pageSize
		answer, err := call(ctx, r, func() (*PaymentPage, error) { return r.client.listPayments(ctx, "Reconcile", query) })
		if err != nil {
			return page, err
		}
		data := answer.Data.Or(nil)
		for i := range data {
			page.payments = append(page.payments, &data[i])
			page.rows = append(page.rows, data[i].ID)
		}
		page.total, page.more = int(answer.TotalCount.Or(0)), answer.HasMore.Or(false)
		r.next.Offset += len(data)
		return page, nil
	}
}

// statement finds movements of money, for charges of any age.
func (r *reconciliation) statement(ctx context.Context) (page scanned, err error) {
	from, until := r.window()
	answer, err := call(ctx, r, func() (*TransactionPage, error) {
		return r.client.listTransactions(ctx, "Reconcile", from, until, r.next.Offset, pageSize)
	})
	if err != nil {
		return page, err
	}
	data := answer.Data.Or(nil)
	var ids []string
	for _, t := range data {
		page.rows = append(page.rows, t.ID.Or(""))
		if id := t.PaymentID.Or(""); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	page.total, page.more = int(answer.TotalCount.Or(0)), answer.HasMore.Or(false)
	if page.payments, err = r.ask(ctx, ids); err != nil {
		return page, err
	}
	r.next.Offset += len(data)
	return page, nil
}

// waitedFor finds the charges that the application waits for. The ids are in their order, so
// that another run goes on after the last one, also if the list has changed.
func (r *reconciliation) waitedFor(ctx context.Context) (page scanned, err error) {
	first, isThere := slices.BinarySearch(r.open, r.next.After)
	if isThere {
		first++
	}
	ids := r.open[first:min(first+pageSize, len(r.open))]
	if len(ids) == 0 {
		return page, nil
	}
	if page.payments, err = r.ask(ctx, ids); err != nil {
		return page, err
	}
	page.rows, page.more = ids, first+len(ids) < len(r.open)
	r.next.After = ids[len(ids)-1]
	return page, nil
}

// ask gets the charges that no scan has found yet. One that Asaas does not have is
// deleted.
func (r *reconciliation) ask(ctx context.Context, ids []string) (out []*Payment, err error) {
	for _, id := range ids {
		if r.seen[id] {
			continue
		}
		p, err := call(ctx, r, func() (*Payment, error) { return r.client.getPayment(ctx, "Reconcile", id) })
		if e, ok := errors.AsType[*APIError](err); ok && e.Status == http.StatusNotFound {
			p, err = &Payment{ID: id, Deleted: true}, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// atOnce is the number of charges that are looked up in the database at once: that reads all
// events, for any number of charges.
const atOnce = 1000

// do does a scan from where the run stands. A list from which charges vanish while it
// is read can skip others: it is read once more then.
func (r *reconciliation) do(ctx context.Context, s scan) error {
	whole := r.next.Offset == 0
	if r.next == r.cursor && !whole { // resumed
		r.next.Offset = max(0, r.next.Offset-pageSize)
	}
	for again := whole; ; again = false {
		rows := make(map[string]bool)
		total, err := r.pages(ctx, s, rows)
		if err != nil {
			return err
		}
		if !again || len(rows) >= total {
			return nil
		}
		r.next.Offset = 0
	}
}

// pages reads the pages of a scan, and notes the charges on them.
func (r *reconciliation) pages(ctx context.Context, s scan, rows map[string]bool) (total int, err error) {
	for more := true; more; {
		before := r.next
		page, err := s.page(ctx)
		if err != nil {
			r.next = before
			return 0, err
		}
		known := len(rows)
		for _, id := range page.rows {
			rows[id] = true
		}
		if more = page.more; more && len(rows) == known {
			return 0, fmt.Errorf("the list %s has no end, its pages repeat: see what answers at the API's address", s.name)
		}
		total = page.total
		for _, p := range page.payments {
			if !r.seen[p.ID] {
				r.seen[p.ID] = true
				r.batch = append(r.batch, found{p, s.name})
			}
		}
		if len(r.batch) >= atOnce && more {
			if err := r.flush(ctx); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// check tells a page of charges from other JSON.
func (p *PaymentPage) check() error {
	data, ok := p.Data.Get()
	if !ok {
		return errors.New("it is no list: see the API's address")
	}
	for i := range data {
		if err := data[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// check tells a page of the statement from other JSON.
func (p *TransactionPage) check() error {
	if p.Data.IsZero() {
		return errors.New("it is no list: see the API's address")
	}
	return nil
}

// check tells a charge from other JSON.
func (p *Payment) check() error {
	if p.ID == "" || p.Status == "" {
		return errors.New("it is no charge, it has no id or no status: see the API's address")
	}
	return nil
}
