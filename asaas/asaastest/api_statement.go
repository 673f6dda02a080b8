package asaastest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
)

// transaction is an entry of the account's statement.
type transaction struct {
	ID             string      `json:"id"`
	Type           string      `json:"type"`
	Value          asaas.Money `json:"value"`
	Balance        asaas.Money `json:"balance"`
	Date           asaas.Date  `json:"date"`
	PaymentID      string      `json:"paymentId"`
	SplitID        *string     `json:"splitId"`
	AnticipationID *string     `json:"anticipationId"`
}

// listTransactions lists the statement, newest first. The balances are those of the order of days: those of
// entries that were listed before change when an event of an older day is emitted.
func (f *Fake) listTransactions(of *account, r *http.Request) (any, error) {
	from, until := r.URL.Query().Get("startDate"), r.URL.Query().Get("finishDate")
	all := slices.Clone(of.statement)
	slices.SortStableFunc(all, func(a, b transaction) int { return cmp.Compare(a.Date, b.Date) })
	var balance asaas.Money
	for n := range all {
		balance = balance.Add(all[n].Value)
		all[n].Balance = balance
	}
	found := slices.DeleteFunc(all, func(t transaction) bool {
		return string(t.Date) < from || until != "" && string(t.Date) > until
	})
	slices.Reverse(found)
	return pageOf(r, found)
}

// book enters into the statement what the newest event of a charge has moved: the money of the charge, and with its
// first coming the fee, the splits, and what an anticipation has to give back. Cash is not at Asaas, and the money of
// a card that is given back early never comes.
func (a *account) book(c *charge) {
	if credit := c.is.NetValue.Or(c.is.Value); c.is.Anticipated && c.credit.IsZero() && !c.came {
		c.credit = credit
		a.move(c, "RECEIVABLE_ANTICIPATION_GROSS_CREDIT", credit, nil)
		a.move(c, "RECEIVABLE_ANTICIPATION_FEE", asaas.Money{}.Sub(asaas.Cents(credit.Cents()/50)), nil)
	}
	moved := c.inAccount().Sub(c.here)
	if moved.IsZero() {
		return
	}
	c.here = c.here.Add(moved)
	if c.came {
		a.move(c, c.kind(moved), moved, nil)
		return
	}
	c.came = true
	a.move(c, "PAYMENT_RECEIVED", moved, nil)
	if fee := c.is.Value.Sub(c.is.NetValue.Or(c.is.Value)); fee.Sign() > 0 {
		a.move(c, "PAYMENT_FEE", asaas.Money{}.Sub(fee), nil)
	}
	for _, split := range c.is.Split.Or(nil) {
		id := split.ID.Or("")
		a.move(c, "INTERNAL_TRANSFER_DEBIT", asaas.Money{}.Sub(split.TotalValue.Or(split.FixedValue.Or(asaas.Money{}))), &id)
	}
	if !c.credit.IsZero() {
		a.move(c, "RECEIVABLE_ANTICIPATION_DEBIT", asaas.Money{}.Sub(c.credit), nil)
	}
}

// inAccount returns the part of the charge's money that is in the account, by its status and its refunds.
func (c *charge) inAccount() asaas.Money {
	switch c.is.Status {
	case asaas.PaymentStatusReceived, asaas.PaymentStatusDunningReceived, asaas.PaymentStatusRefundRequested, asaas.PaymentStatusRefundInProgress:
	default:
		return asaas.Money{}
	}
	if c.is.PaymentDate.Or("") == "" { // asked back before it came
		return asaas.Money{}
	}
	left := c.is.Value
	for _, refund := range c.is.Refunds.Or(nil) {
		if refund.Status.Or(asaas.RefundStatusDone) == asaas.RefundStatusDone {
			left = left.Sub(refund.Value.Or(asaas.Money{}))
		}
	}
	return left
}

// kind returns the type of a movement of money that has come before.
func (c *charge) kind(moved asaas.Money) string {
	_, disputed := c.is.Chargeback.Get()
	switch {
	case moved.Sign() < 0 && strings.Contains(string(c.is.Status), "CHARGEBACK"):
		return "CHARGEBACK"
	case moved.Sign() < 0:
		return "PAYMENT_REVERSAL"
	case disputed:
		return "CHARGEBACK_REVERSAL"
	}
	return "PAYMENT_REFUND_CANCELLED"
}

// move enters a movement of the day of the charge's newest event.
func (a *account) move(c *charge, kind string, value asaas.Money, split *string) {
	day, _, _ := strings.Cut(string(c.at), " ")
	t := transaction{ID: fmt.Sprintf("fint_%012d", len(a.statement)+1), Type: kind, Value: value, Date: asaas.Date(day), PaymentID: c.is.ID, SplitID: split}
	if strings.HasPrefix(kind, "RECEIVABLE_ANTICIPATION_") {
		id := "00000000-0000-4000-b000-" + fmt.Sprintf("%012d", c.order)
		t.AnticipationID = &id
	}
	a.statement = append(a.statement, t)
}
