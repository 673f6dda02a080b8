package asaas

import (
	"strings"
	"time"
)

// StateOf returns the state of a charge: its status, or DELETED for one that is
// removed, which keeps its status.
func StateOf(p *Payment) string {
	if p.Deleted {
		return "DELETED"
	}
	return string(p.Status)
}

// before are the events that come before a charge is in a state, and the one that
// brings it there, without PAYMENT_CREATED. Those that come for some charges only are
// left out by isCertain.
//
// See https://docs.asaas.com/docs/payment-events.
var before = map[string][]EventType{
	"DELETED":                      {EventPaymentDeleted},
	"AUTHORIZED":                   {EventPaymentAuthorized},
	"AWAITING_RISK_ANALYSIS":       {EventPaymentAwaitingRiskAnalysis},
	"OVERDUE":                      {EventPaymentOverdue},
	"CONFIRMED":                    {EventPaymentConfirmed},
	"RECEIVED":                     {EventPaymentConfirmed, EventPaymentReceived},
	"RECEIVED_IN_CASH":             {EventPaymentReceived},
	"REFUND_REQUESTED":             {EventPaymentConfirmed, EventPaymentReceived}, // it has no event of its own
	"REFUND_IN_PROGRESS":           {EventPaymentConfirmed, EventPaymentReceived, EventPaymentRefundInProgress},
	"REFUNDED":                     {EventPaymentConfirmed, EventPaymentReceived, EventPaymentRefunded},
	"CHARGEBACK_REQUESTED":         {EventPaymentConfirmed, EventPaymentReceived, EventPaymentChargebackRequested},
	"CHARGEBACK_DISPUTE":           {EventPaymentConfirmed, EventPaymentReceived, EventPaymentChargebackRequested, EventPaymentChargebackDispute},
	"AWAITING_CHARGEBACK_REVERSAL": {EventPaymentConfirmed, EventPaymentReceived, EventPaymentChargebackRequested, EventPaymentChargebackDispute, EventPaymentAwaitingChargebackReversal},
	"DUNNING_REQUESTED":            {EventPaymentOverdue, EventPaymentDunningRequested},
	"DUNNING_RECEIVED":             {EventPaymentOverdue, EventPaymentDunningRequested, EventPaymentDunningReceived},
}

// expectedOf are the events that must have come for a charge in its state, in their
// order.
func expectedOf(p *Payment) []EventType {
	out := []EventType{EventPaymentCreated}
	for _, t := range before[StateOf(p)] {
		if isCertain(p, t) {
			out = append(out, t)
		}
	}
	isPaid := p.Status == PaymentStatusConfirmed || p.Status == PaymentStatusReceived
	if isPaid && !p.Deleted && !refundDay(p).IsZero() {
		out = append(out, EventPaymentPartiallyRefunded)
	}
	return out
}

// isCertain reports whether an event on the way to the state of a charge comes for
// this one. A Pix is received without being confirmed, and so may a boleto be; a card
// can be refunded or disputed before its money is there.
func isCertain(p *Payment, t EventType) bool {
	switch t {
	case EventPaymentConfirmed:
		return p.Status == PaymentStatusConfirmed || strings.HasSuffix(string(p.BillingType), "_CARD")
	case EventPaymentReceived:
		return strings.HasPrefix(string(p.Status), "RECEIVED") || !dayOf(p.PaymentDate.Or("")).IsZero()
	}
	return true
}

// dayOfEvent is the day on which an event of a charge came to be; zero if the charge
// does not tell.
func dayOfEvent(p *Payment, t EventType) time.Time {
	switch t {
	case EventPaymentCreated:
		return dayOf(p.DateCreated)
	case EventPaymentOverdue:
		if due := dayOf(p.DueDate); !due.IsZero() {
			return due.AddDate(0, 0, 1)
		}
	case EventPaymentConfirmed:
		if day := dayOf(p.ConfirmedDate.Or("")); !day.IsZero() {
			return day
		}
		return dayOf(p.ClientPaymentDate.Or(""))
	case EventPaymentReceived:
		return dayOf(p.PaymentDate.Or(""))
	case EventPaymentRefunded, EventPaymentPartiallyRefunded, EventPaymentRefundInProgress:
		return refundDay(p)
	case EventPaymentChargebackRequested:
		return dayOf(p.Chargeback.Or(Chargeback{}).DisputeStartDate.Or(""))
	}
	return time.Time{}
}

// dayOf returns zero for a text that is no date.
func dayOf(d Date) time.Time {
	at, err := d.Time()
	if err != nil {
		return time.Time{}
	}
	return at
}

// refundDay is the day of the newest refund that was not canceled.
func refundDay(p *Payment) (last time.Time) {
	for _, r := range p.Refunds.Or(nil) {
		at, err := r.DateCreated.Or("").Time()
		if err == nil && r.Status.Or("") != RefundStatusCancelled && at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return last
	}
	return dayOf(Date(dayIn(last)))
}

func dayIn(t time.Time) string { return t.In(Brasilia()).Format(time.DateOnly) }
