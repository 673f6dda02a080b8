package asaas

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

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
// deleted. A page of HTML is no answer of Asaas's, and deletes nothing.
func (r *reconciliation) ask(ctx context.Context, ids []string) (out []*Payment, err error) {
	for _, id := range ids {
		if r.seen[id] {
			continue
		}
		p, err := call(ctx, r, func() (*Payment, error) { return r.client.getPayment(ctx, "Reconcile", id) })
		if e, ok := errors.AsType[*APIError](err); ok && e.Status == http.StatusNotFound && !errors.Is(e, errHTML) {
			p, err = &Payment{ID: id, Deleted: true}, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
