package charges

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// chargeOf returns the row of a charge, without the columns that say which copy it is.
func chargeOf(p *asaas.Payment) (*Charge, error) {
	c := &Charge{
		ID: p.ID, Status: p.Status,
		Value: p.Value, OriginalValue: p.OriginalValue.Or(p.Value), NetValue: p.NetValue,
		Deleted: p.Deleted, Anticipated: p.Anticipated, BillingType: asaas.BillingType(storable(string(p.BillingType))), Customer: storable(p.Customer),
		ExternalReference: nonEmpty(p.ExternalReference), Installment: nonEmpty(p.Installment), Subscription: nonEmpty(p.Subscription),
		CheckoutSession: nonEmpty(p.CheckoutSession), PaymentLink: nonEmpty(p.PaymentLink), PixQrCodeID: nonEmpty(p.PixQrCodeID),
		Created: day(p.DateCreated), Due: day(p.DueDate),
		Credited: day(p.CreditDate.Or(p.EstimatedCreditDate.Or(""))), ReceivedOn: day(p.PaymentDate.Or("")),
	}
	if c.NetValue.IsNull() {
		c.NetValue = value.Optional[asaas.Money]{}
	}
	if !isAmount(c.OriginalValue) {
		c.OriginalValue = c.Value
	}
	d := p.Discount.Or(asaas.Discount{})
	if off, percent := d.Value.Or(asaas.Money{}), d.Type.Or("") == asaas.ValueTypePercentage; isAmount(off) && (!percent || off.Cmp(asaas.Cents(100_00)) <= 0) {
		c.discount = discount{off, percent}
	}
	if n := p.InstallmentNumber.Or(0); 0 < n && n <= math.MaxInt32 {
		c.InstallmentNumber = int(n)
	}
	if strings.ContainsAny(p.ID, "\x00\uFFFD") { // decoding has made different ids equal, or Postgres has no place for it
		return nil, fmt.Errorf("asaas/charges: the id of a charge, %q, is no text: see the event's body", p.ID)
	}
	if !isAmount(p.Value) {
		return nil, fmt.Errorf("asaas/charges: the value of %s is R$ %s, which is no amount of money: see it at Asaas", p.ID, p.Value)
	}
	return c, c.count(p)
}

// isAmount reports whether a charge can have this amount: whole cents, and not more than all the money of Brazil, with
// which every sum and difference is exact.
func isAmount(m asaas.Money) bool {
	return m.Sign() >= 0 && m.Cmp(asaas.Cents(1e15)) < 0 && m.Round(2) == m
}

// count sets the amounts that follow from the status and the refunds. A status that is newer than this
// module has none: a guess about money would be booked, and an error is seen.
func (c *Charge) count(p *asaas.Payment) error {
	if err := c.countRefunds(p); err != nil {
		return err
	}
	rest := c.Value.Sub(c.Refunded)
	if isAsked(p.Status) {
		c.Refunding = asaas.Money{}
		return nil
	}
	switch p.Status {
	case asaas.PaymentStatusConfirmed: // an anticipation pays it out early, and is another movement of the account
		c.Paid = rest
	case asaas.PaymentStatusReceived, asaas.PaymentStatusReceivedInCash, asaas.PaymentStatusDunningReceived:
		c.Paid, c.Received = rest, rest
	case asaas.PaymentStatusRefundRequested, asaas.PaymentStatusRefundInProgress: // do not ship, but the money is still here
		if c.ReceivedOn != "" {
			c.Received = rest
		}
	case asaas.PaymentStatusChargebackRequested, asaas.PaymentStatusChargebackDispute, asaas.PaymentStatusAwaitingChargebackReversal:
	case asaas.PaymentStatusRefunded:
	default:
		return fmt.Errorf("asaas/charges: the status %q of %s is newer than this module, so that nothing is known about its money: "+
			"update github.com/paghooks/paghooks, and replay the event", p.Status, p.ID)
	}
	c.Refunding = least(c.Refunding, c.Paid) // what is paid no more cannot be asked back
	c.settle()
	return nil
}

// settle sets the part of the price that is done.
func (c *Charge) settle() {
	c.Settled = asaas.Money{}
	if c.Paid.Sign() > 0 && c.OriginalValue.Cmp(c.Refunded) > 0 {
		c.Settled = c.OriginalValue.Sub(c.Refunded)
	}
}

// discount is the reduction that a copy of a charge offers.
type discount struct {
	value   asaas.Money
	percent bool
}

// leaves reports whether a price less the discount is an amount. Nobody knows how Asaas rounds per cents.
func (d discount) leaves(price, rest asaas.Money) bool {
	if !d.percent {
		return price.Sub(d.value) == rest
	}
	off := price.Mul(d.value).Mul(asaas.Cents(1))
	return price.Sub(off).Round(2) == rest || price.Sub(rest).Round(2) == off.Round(2)
}

// discounted gives a paid charge the price that it had before its discount, if the other copy, which is older, has
// it, and reports whether that is another one. Asaas does not document whether value or originalValue has the price
// then: if neither has it, value is the price that was asked less exactly the discount.
func (c *Charge) discounted(other *Charge, d discount) bool {
	price := other.OriginalValue
	if isAsked(c.Status) || c.OriginalValue != c.Value || price.Cmp(c.Value) <= 0 || price.Cmp(mostDiscounted) > 0 || !d.leaves(price, c.Value) {
		return false
	}
	c.OriginalValue = price
	c.settle()
	return true
}

// mostDiscounted is a price with which the arithmetic of per cents is exact.
var mostDiscounted = asaas.Cents(1e12)

// isAsked reports whether a charge of the status waits for its first payment.
func isAsked(s asaas.PaymentStatus) bool {
	switch s {
	case asaas.PaymentStatusPending, asaas.PaymentStatusAuthorized, asaas.PaymentStatusAwaitingRiskAnalysis,
		asaas.PaymentStatusOverdue, asaas.PaymentStatusDunningRequested:
		return true
	}
	return false
}

// countRefunds sets the amounts that were given back, and that are to be. The money of a refund has gone
// only when it is done.
func (c *Charge) countRefunds(p *asaas.Payment) error {
	if p.Status == asaas.PaymentStatusRefunded { // also after a lost chargeback, and of a Pix that was held back: without any refund
		c.Refunded = c.Value
		return nil
	}
	for _, r := range p.Refunds.Or(nil) {
		value, known := r.Value.Get()
		switch status := r.Status.Or(""); {
		case status == asaas.RefundStatusCancelled:
		case known && !isAmount(value):
			return fmt.Errorf("asaas/charges: a refund of %s is R$ %s, which is no amount of money: see it at Asaas", p.ID, value)
		case status == asaas.RefundStatusDone && known:
			c.Refunded = c.Refunded.Add(value)
		case status == asaas.RefundStatusDone:
			return fmt.Errorf("asaas/charges: a refund of %s is done and has no amount: what is left of the charge is not known; see it at Asaas", p.ID)
		case status != "" && !status.Known():
			return fmt.Errorf("asaas/charges: the status %q of a refund of %s is newer than this module, so that nothing is known about its money: "+
				"update github.com/paghooks/paghooks, and replay the event", status, p.ID)
		case known:
			c.Refunding = least(c.Refunding.Add(value), c.Value)
		default: // all that is left
			c.Refunding = c.Value
		}
		if c.Refunded.Cmp(c.Value) > 0 {
			return fmt.Errorf("asaas/charges: R$ %s of %s were given back, and its value is R$ %s: see it at Asaas", c.Refunded, p.ID, c.Value)
		}
	}
	return nil
}

func least(a, b asaas.Money) asaas.Money {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// day returns a day as 2026-08-08, "" where there is none that can be read: none decides about money.
func day(d asaas.Date) asaas.Date {
	at, err := d.Time()
	if err != nil || at.Year() < 1 {
		return ""
	}
	return asaas.Date(at.Format(time.DateOnly))
}

// nonEmpty returns a text that Postgres can store and that equals something in a query.
func nonEmpty(v value.Optional[string]) value.Optional[string] {
	if text := storable(v.Or("")); text != "" {
		return value.Of(text)
	}
	return value.Optional[string]{}
}

// storable returns a text without the one character that Postgres has no place for.
func storable(text string) string { return strings.ReplaceAll(text, "\x00", "") }
