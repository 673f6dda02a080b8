package asaastest

import (
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// Created creates the charge.
func (c *Charge) Created() []byte {
	c.in(asaas.EventPaymentCreated, "")
	return c.becomes(asaas.EventPaymentCreated, asaas.PaymentStatusPending)
}

// Overdue lets the due date pass.
func (c *Charge) Overdue() []byte {
	c.in(asaas.EventPaymentOverdue, asaas.PaymentStatusPending)
	if due, err := c.Payment.DueDate.Time(); err == nil && c.Now.Before(due.AddDate(0, 0, 1)) {
		c.Now = due.AddDate(0, 0, 1).Add(6 * time.Hour)
	}
	return c.becomes(asaas.EventPaymentOverdue, asaas.PaymentStatusOverdue)
}

// CardRefused has the customer's card refused. The charge keeps its status, and may be paid later.
func (c *Charge) CardRefused() []byte {
	c.in(asaas.EventPaymentCreditCardCaptureRefused, asaas.PaymentStatusPending, asaas.PaymentStatusOverdue)
	if !c.isCard() {
		panic(fmt.Sprintf("asaastest: a %s has no card: make the charge with BillingTypeCreditCard", c.Payment.BillingType))
	}
	c.Now = c.Now.Add(time.Minute)
	return c.event(asaas.EventPaymentCreditCardCaptureRefused)
}

// Confirmed lets the customer pay, or a chargeback end well: the money is not
// available yet. A Pix is Received at once.
func (c *Charge) Confirmed() []byte {
	c.in(asaas.EventPaymentConfirmed, asaas.PaymentStatusPending, asaas.PaymentStatusOverdue, asaas.PaymentStatusAuthorized,
		asaas.PaymentStatusAwaitingRiskAnalysis, asaas.PaymentStatusAwaitingChargebackReversal)
	if c.Payment.BillingType == asaas.BillingTypePix {
		panic("asaastest: PAYMENT_CONFIRMED does not come for a Pix: let it be Received")
	}
	c.pay()
	c.Payment.PaymentDate = value.Null[asaas.Date]()
	return c.becomes(asaas.EventPaymentConfirmed, asaas.PaymentStatusConfirmed)
}

// Received makes the money available: at once for a Pix, 32 days after the
// payment for a credit card, 3 for a debit card and 1 for a boleto.
func (c *Charge) Received() []byte {
	c.in(asaas.EventPaymentReceived, asaas.PaymentStatusPending, asaas.PaymentStatusOverdue, asaas.PaymentStatusConfirmed,
		asaas.PaymentStatusAwaitingChargebackReversal)
	c.pay()
	if credit, err := c.Payment.CreditDate.Or("").Time(); err == nil && c.Now.Before(credit) {
		c.Now = credit.Add(3 * time.Hour)
	}
	c.Payment.PaymentDate = value.Of(day(c.Now))
	return c.becomes(asaas.EventPaymentReceived, asaas.PaymentStatusReceived)
}

// ReceivedInCash lets the merchant say that it was paid outside of Asaas. The
// event is PAYMENT_RECEIVED.
func (c *Charge) ReceivedInCash() []byte {
	c.in(asaas.EventPaymentReceived, asaas.PaymentStatusPending, asaas.PaymentStatusOverdue)
	c.Now = c.Now.Add(time.Hour)
	today := value.Of(day(c.Now))
	c.Payment.ClientPaymentDate, c.Payment.PaymentDate = today, today
	c.Payment.NetValue = value.Of(c.Payment.Value)
	return c.becomes(asaas.EventPaymentReceived, asaas.PaymentStatusReceivedInCash)
}

// CashUndone takes back that it was paid outside of Asaas: the charge is to be paid again.
func (c *Charge) CashUndone() []byte {
	c.in(asaas.EventPaymentReceivedInCashUndone, asaas.PaymentStatusReceivedInCash)
	c.Now = c.Now.Add(time.Hour)
	c.Payment.ClientPaymentDate, c.Payment.PaymentDate = value.Null[asaas.Date](), value.Null[asaas.Date]()
	c.Payment.NetValue = value.Of(afterFee(c.Payment.Value))
	c.Payment.Status = asaas.PaymentStatusPending
	if due, err := c.Payment.DueDate.Time(); err == nil && !c.Now.Before(due.AddDate(0, 0, 1)) {
		c.Payment.Status = asaas.PaymentStatusOverdue
	}
	return c.event(asaas.EventPaymentReceivedInCashUndone)
}

// pay lets the customer pay, if that did not happen yet.
func (c *Charge) pay() {
	if _, paid := c.Payment.ClientPaymentDate.Get(); paid {
		c.Now = c.Now.Add(time.Hour)
		return
	}
	c.Now = c.Now.Add(2 * time.Minute)
	p := &c.Payment
	p.ConfirmedDate, p.ClientPaymentDate = value.Of(day(c.Now)), value.Of(day(c.Now))
	days := map[asaas.BillingType]int{asaas.BillingTypeCreditCard: 32, asaas.BillingTypeDebitCard: 3, asaas.BillingTypeBoleto: 1}[p.BillingType]
	credit := value.Of(day(c.Now.AddDate(0, 0, days)))
	p.CreditDate, p.EstimatedCreditDate = credit, credit
	p.TransactionReceiptURL = value.Of("https://www.asaas.com/000/comprovantes/" + p.InvoiceNumber)
	switch {
	case c.isCard():
		p.CreditCard = value.Of(asaas.CreditCard{CreditCardNumber: value.Of("8829"), CreditCardBrand: value.Of(asaas.CreditCardBrandVisa)})
	case p.BillingType == asaas.BillingTypePix:
		p.PixTransaction = value.Of("00000000-0000-4000-9000-000" + p.InvoiceNumber)
		p.PixQrCodeID = value.Of("LOJAEXEMPLO00000000000" + p.InvoiceNumber + "ASA")
	}
}

// PartiallyRefunded gives a part of the money back. The charge keeps its status;
// the refund is in Payment.Refunds. It panics where no money would be left, for
// which there is Refunded.
func (c *Charge) PartiallyRefunded(value asaas.Money) []byte {
	c.in(asaas.EventPaymentPartiallyRefunded, asaas.PaymentStatusConfirmed, asaas.PaymentStatusReceived)
	if value.Sign() <= 0 || value.Cmp(c.left()) >= 0 {
		panic(fmt.Sprintf("asaastest: R$ %s is no part of the R$ %s that are left: call Refunded to give all back", value, c.left()))
	}
	c.refund(value, asaas.RefundStatusDone)
	return c.event(asaas.EventPaymentPartiallyRefunded)
}

// Refunded gives back all money that is left, as a refund or because a
// chargeback was lost.
func (c *Charge) Refunded() []byte {
	c.in(asaas.EventPaymentRefunded, asaas.PaymentStatusConfirmed, asaas.PaymentStatusReceived,
		asaas.PaymentStatusChargebackRequested, asaas.PaymentStatusChargebackDispute)
	if dispute, ok := c.Payment.Chargeback.Get(); ok {
		dispute.Status = value.Of(asaas.ChargebackStatusDisputeLost)
		c.Payment.Chargeback = value.Of(dispute)
		c.Now = c.Now.AddDate(0, 0, 30)
	}
	c.refund(c.left(), asaas.RefundStatusDone)
	c.Payment.Status = asaas.PaymentStatusRefunded
	if c.Payment.BillingType == asaas.BillingTypePix {
		c.Payment.PixTransaction = value.Null[string]()
	}
	return c.event(asaas.EventPaymentRefunded)
}

// RefundAsked asks for money back, which is not given back yet. Of all that is left the status becomes
// REFUND_IN_PROGRESS, of a part it stays as it is. RefundDone, RefundDenied or RefundCanceled ends it.
func (c *Charge) RefundAsked(val asaas.Money) []byte {
	eventType := asaas.EventPaymentPartiallyRefunded
	if val == c.left() {
		eventType = asaas.EventPaymentRefundInProgress
	}
	c.in(eventType, asaas.PaymentStatusConfirmed, asaas.PaymentStatusReceived)
	if val.Sign() <= 0 || val.Cmp(c.left()) > 0 {
		panic(fmt.Sprintf("asaastest: R$ %s is more than the R$ %s that are left, or nothing", val, c.left()))
	}
	c.refund(val, asaas.RefundStatusPending)
	if eventType == asaas.EventPaymentRefundInProgress {
		c.Payment.Status = asaas.PaymentStatusRefundInProgress
	}
	return c.event(eventType)
}

// RefundDone gives the money back that RefundAsked has asked for.
func (c *Charge) RefundDone() []byte {
	c.endRefund(asaas.EventPaymentRefunded, asaas.RefundStatusDone)
	if c.Payment.Status != asaas.PaymentStatusRefundInProgress {
		return c.event(asaas.EventPaymentPartiallyRefunded)
	}
	return c.becomes(asaas.EventPaymentRefunded, asaas.PaymentStatusRefunded)
}

// RefundDenied ends the refund of a boleto: the money stays.
func (c *Charge) RefundDenied() []byte {
	if c.Payment.BillingType != asaas.BillingTypeBoleto {
		panic(fmt.Sprintf("asaastest: the refund of a %s is not denied: make the charge with BillingTypeBoleto", c.Payment.BillingType))
	}
	c.endRefund(asaas.EventPaymentRefundDenied, asaas.RefundStatusCancelled)
	return c.event(asaas.EventPaymentRefundDenied)
}

// RefundCanceled calls a refund off: the money stays. Which event tells it is not documented; here it is
// PAYMENT_UPDATED.
func (c *Charge) RefundCanceled() []byte {
	c.endRefund(asaas.EventPaymentUpdated, asaas.RefundStatusCancelled)
	return c.event(asaas.EventPaymentUpdated)
}

// endRefund ends the refund that was asked for. One that is cancelled gives the charge the status back that it had
// before all of it was asked back.
func (c *Charge) endRefund(next asaas.EventType, status asaas.RefundStatus) {
	refunds := slices.Clone(c.Payment.Refunds.Or(nil))
	if len(refunds) == 0 || refunds[len(refunds)-1].Status.Or("") != asaas.RefundStatusPending {
		panic(fmt.Sprintf("asaastest: %s cannot come now: no refund was asked for, let one be RefundAsked first", next))
	}
	c.Now = c.Now.Add(time.Hour)
	last := &refunds[len(refunds)-1]
	if last.Status = value.Of(status); status == asaas.RefundStatusDone && c.Payment.BillingType == asaas.BillingTypePix {
		last.EffectiveDate = value.Of(asaas.DateTime(c.Now.Format(time.DateTime)))
	}
	c.Payment.Refunds = value.Of(refunds)
	wasAll := c.Payment.Status == asaas.PaymentStatusRefundInProgress || c.Payment.Status == asaas.PaymentStatusRefundRequested
	if !wasAll || status != asaas.RefundStatusCancelled {
		return
	}
	c.Payment.Status = asaas.PaymentStatusConfirmed
	if _, settled := c.Payment.PaymentDate.Get(); settled {
		c.Payment.Status = asaas.PaymentStatusReceived
	}
}

// left is the amount that was not given back yet, and was not asked back.
func (c *Charge) left() asaas.Money {
	left := c.Payment.Value
	for _, r := range c.Payment.Refunds.Or(nil) {
		if r.Status.Or("") != asaas.RefundStatusCancelled {
			left = left.Sub(r.Value.Or(asaas.Money{}))
		}
	}
	return left
}

func (c *Charge) refund(val asaas.Money, status asaas.RefundStatus) {
	c.Now = c.Now.Add(time.Hour)
	now := value.Of(asaas.DateTime(c.Now.Format(time.DateTime)))
	r := asaas.Refund{DateCreated: now, Status: value.Of(status), Value: value.Of(val)}
	if c.Payment.BillingType == asaas.BillingTypePix {
		if status == asaas.RefundStatusDone {
			r.EffectiveDate = now
		}
		r.EndToEndIdentifier = value.Of(fmt.Sprintf("D19540550%s%s", c.Now.Format("200601021504"), c.Payment.InvoiceNumber))
	}
	earlier := c.Payment.Refunds.Or(nil)
	c.Payment.Refunds = value.Of(append(earlier[:len(earlier):len(earlier)], r))
}

// ChargebackRequested lets the owner of the card dispute the payment.
func (c *Charge) ChargebackRequested() []byte {
	c.in(asaas.EventPaymentChargebackRequested, asaas.PaymentStatusConfirmed, asaas.PaymentStatusReceived)
	if !c.isCard() {
		panic(fmt.Sprintf("asaastest: a %s has no chargeback: make the charge with BillingTypeCreditCard", c.Payment.BillingType))
	}
	c.Now = c.Now.AddDate(0, 0, 3)
	p := &c.Payment
	p.Status = asaas.PaymentStatusChargebackRequested
	p.Chargeback = value.Of(asaas.Chargeback{
		ID:               value.Of("00000000-0000-4000-a000-000" + p.InvoiceNumber),
		Payment:          value.Of(p.ID),
		Installment:      p.Installment,
		CustomerAccount:  value.Of(p.Customer),
		Status:           value.Of(asaas.ChargebackStatusRequested),
		Reason:           value.Of(asaas.ChargebackReasonFraud),
		DisputeStartDate: value.Of(day(c.Now)),
		Value:            value.Of(p.Value),
		PaymentDate:      p.PaymentDate,
	})
	return c.event(asaas.EventPaymentChargebackRequested)
}

// ChargebackDispute hands in the evidence against the chargeback.
func (c *Charge) ChargebackDispute() []byte {
	c.in(asaas.EventPaymentChargebackDispute, asaas.PaymentStatusChargebackRequested)
	c.dispute(asaas.ChargebackStatusInDispute, asaas.ChargebackDisputeStatusRequested)
	return c.becomes(asaas.EventPaymentChargebackDispute, asaas.PaymentStatusChargebackDispute)
}

// AwaitingChargebackReversal lets the merchant win the dispute. Confirmed or
// Received comes again after it: as a second event of its type, for the same
// charge.
func (c *Charge) AwaitingChargebackReversal() []byte {
	c.in(asaas.EventPaymentAwaitingChargebackReversal, asaas.PaymentStatusChargebackDispute)
	c.dispute(asaas.ChargebackStatusReversed, asaas.ChargebackDisputeStatusAccepted)
	return c.becomes(asaas.EventPaymentAwaitingChargebackReversal, asaas.PaymentStatusAwaitingChargebackReversal)
}

func (c *Charge) dispute(status asaas.ChargebackStatus, evidence asaas.ChargebackDisputeStatus) {
	c.Now = c.Now.AddDate(0, 0, 10)
	dispute := c.Payment.Chargeback.Or(asaas.Chargeback{})
	dispute.Status, dispute.DisputeStatus = value.Of(status), value.Of(evidence)
	c.Payment.Chargeback = value.Of(dispute)
}

// Deleted removes the charge, which keeps its status.
func (c *Charge) Deleted() []byte {
	c.in(asaas.EventPaymentDeleted, asaas.PaymentStatusPending, asaas.PaymentStatusOverdue)
	c.Now = c.Now.Add(time.Hour)
	c.Payment.Deleted = true
	return c.event(asaas.EventPaymentDeleted)
}

// Restored brings a removed charge back.
func (c *Charge) Restored() []byte {
	if !c.Payment.Deleted {
		panic("asaastest: PAYMENT_RESTORED cannot come now: the charge is not deleted")
	}
	c.Now = c.Now.Add(time.Hour)
	c.Payment.Deleted = false
	return c.event(asaas.EventPaymentRestored)
}
