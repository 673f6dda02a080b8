package asaastest

import (
	"net/http"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// Life is the life of a charge as Asaas documents it, up to an end: its events, and the truth about it and its
// money after the last of them.
type Life struct {
	Name   string
	Charge *Charge  // after the last event; it may live on
	Bodies [][]byte // of the events, in the order in which they happened

	Status   asaas.PaymentStatus
	Deleted  bool
	Paid     asaas.Money // paid and not given back
	Received asaas.Money // the part of it whose money has come
}

// Requests makes the requests that deliver the events: see [Request].
func (l Life) Requests(path, token string) []*http.Request {
	var out []*http.Request
	for _, body := range l.Bodies {
		out = append(out, Request(path, token, body))
	}
	return out
}

// Lives returns the documented lives of charges, each with a charge of its own whose ExternalReference is reference;
// null for "". Their ends were written down by hand, from Asaas's documentation: what a table of charges, an order or
// a ledger has to hold after the events of a life, in any order, and after those of a life that lost some but not the
// last.
//
//	for _, life := range asaastest.Lives("order-1") {
//		t.Run(life.Name, func(t *testing.T) {
//			idemtest.AnyOrder(t, newSource, life.Requests("/webhooks/asaas", "token"), func(ctx context.Context, pool *pgxpool.Pool) error {
//				… // is what order-1 has paid life.Paid?
//			})
//		})
//	}
//
// Where the documentation leaves open which event tells a change, such as a refund that is called off, a life has the
// most probable one.
func Lives(reference string) []Life {
	var lives []Life
	for _, d := range documented {
		c := NewCharge(d.billing, asaas.Cents(10000))
		if d.of != nil {
			c = d.of()
		}
		if reference != "" {
			c.Payment.ExternalReference = value.Of(reference)
		}
		life := Life{Name: d.name, Charge: c, Status: d.status, Deleted: d.deleted, Paid: asaas.Cents(d.paid), Received: asaas.Cents(d.received)}
		life.Bodies = append(life.Bodies, c.Created())
		for _, step := range d.steps {
			life.Bodies = append(life.Bodies, step(c))
		}
		lives = append(lives, life)
	}
	return lives
}

type step = func(*Charge) []byte

const (
	boleto = asaas.BillingTypeBoleto
	card   = asaas.BillingTypeCreditCard
	pix    = asaas.BillingTypePix
)

// documented are the lives: after Created, the steps of a charge of R$ 100.00, and its end. Amounts are in cents.
var documented = []struct {
	name    string
	billing asaas.BillingType
	of      func() *Charge // a charge that is not that of billing
	steps   []step

	status         asaas.PaymentStatus
	deleted        bool
	paid, received int64
}{
	{name: "a Pix", billing: pix, steps: []step{received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a Pix, overdue", billing: pix, steps: []step{overdue, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a Pix, held back and released", billing: pix, steps: []step{held, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a Pix, held back and returned", billing: pix, steps: []step{held, upheld}, status: "REFUNDED"},
	{name: "a Pix, parts given back", billing: pix, steps: []step{received, partly(1000), partly(2000)}, status: "RECEIVED", paid: 7000, received: 7000},
	{name: "a Pix, parts given back, then the rest", billing: pix, steps: []step{received, partly(1000), partly(2000), refunded}, status: "REFUNDED"},
	{name: "a Pix, a part asked back", billing: pix, steps: []step{received, asked(3000)}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a Pix, a part asked back and given back", billing: pix, steps: []step{received, asked(3000), done}, status: "RECEIVED", paid: 7000, received: 7000},
	{name: "a Pix, asked back", billing: pix, steps: []step{received, asked(10000)}, status: "REFUND_IN_PROGRESS", received: 10000},
	{name: "a Pix, asked back and given back", billing: pix, steps: []step{received, asked(10000), done}, status: "REFUNDED"},

	{name: "a boleto", billing: boleto, steps: []step{confirmed, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a boleto, never paid", billing: boleto, steps: []step{overdue}, status: "OVERDUE"},
	{name: "a boleto, overdue, with interest", billing: boleto, steps: []step{overdue, withInterest, received}, status: "RECEIVED", paid: 10312, received: 10312},
	{name: "a boleto, overdue, then due later", billing: boleto, steps: []step{overdue, dueLater, confirmed, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a boleto, its refund denied", billing: boleto, steps: []step{confirmed, received, asked(10000), requested, denied}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a boleto, its refund requested", billing: boleto, steps: []step{confirmed, received, asked(10000), requested}, status: "REFUND_REQUESTED", received: 10000},
	{name: "a boleto, recovered by the bureau", billing: boleto, steps: []step{overdue, dunning, recovered}, status: "DUNNING_RECEIVED", paid: 10000, received: 10000},

	{name: "a card", billing: card, steps: []step{confirmed, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a card, its money to come", billing: card, steps: []step{confirmed}, status: "CONFIRMED", paid: 10000},
	{name: "a card, refused and then paid", billing: card, steps: []step{(*Charge).CardRefused, overdue, (*Charge).CardRefused, confirmed}, status: "CONFIRMED", paid: 10000},
	{name: "a card, authorized", billing: card, steps: []step{authorized, confirmed, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a card, analyzed", billing: card, steps: []step{analyzed, confirmed}, status: "CONFIRMED", paid: 10000},
	{name: "a card, anticipated", billing: card, steps: []step{confirmed, anticipated}, status: "CONFIRMED", paid: 10000},
	{name: "a card, given back before its money came", billing: card, steps: []step{confirmed, refunded}, status: "REFUNDED"},
	{name: "a card, given back after its money came", billing: card, steps: []step{confirmed, received, refunded}, status: "REFUNDED"},
	{name: "a card, a part given back before its money came", billing: card, steps: []step{confirmed, partly(4000), received}, status: "RECEIVED", paid: 6000, received: 6000},
	{name: "a card, its refund called off", billing: card, steps: []step{confirmed, asked(10000), canceled}, status: "CONFIRMED", paid: 10000},
	{name: "a card, disputed", billing: card, steps: []step{confirmed, received, chargeback}, status: "CHARGEBACK_REQUESTED"},
	{name: "a chargeback, lost", billing: card, steps: []step{confirmed, received, chargeback, dispute, refunded}, status: "REFUNDED"},
	{name: "a chargeback, not disputed", billing: card, steps: []step{confirmed, chargeback, refunded}, status: "REFUNDED"},
	{name: "a chargeback, won", billing: card, steps: []step{confirmed, received, chargeback, dispute, won, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "a chargeback, won before the money came", billing: card, steps: []step{confirmed, chargeback, dispute, won, confirmed}, status: "CONFIRMED", paid: 10000},

	{name: "cash", billing: boleto, steps: []step{cash}, status: "RECEIVED_IN_CASH", paid: 10000, received: 10000},
	{name: "cash, undone", billing: boleto, steps: []step{cash, undone}, status: "PENDING"},
	{name: "cash, undone when overdue, then a Pix", billing: pix, steps: []step{overdue, cash, undone, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "removed", billing: boleto, steps: []step{removed}, status: "PENDING", deleted: true},
	{name: "removed when overdue", billing: boleto, steps: []step{overdue, removed}, status: "OVERDUE", deleted: true},
	{name: "removed and restored, then paid", billing: pix, steps: []step{removed, restored, received}, status: "RECEIVED", paid: 10000, received: 10000},

	{name: "the first installment of a card", of: installment(card, 0), steps: []step{confirmed, received}, status: "RECEIVED", paid: 10000, received: 10000},
	{name: "the second installment of a card", of: installment(card, 1), steps: []step{confirmed}, status: "CONFIRMED", paid: 10000},
	{name: "the last installment of boletos, removed", of: installment(boleto, 2), steps: []step{removed}, status: "PENDING", deleted: true},
	{name: "the second renewal of a subscription", of: renewal(2), steps: []step{received}, status: "RECEIVED", paid: 10000, received: 10000},
}

var (
	overdue, confirmed, received, refunded = (*Charge).Overdue, (*Charge).Confirmed, (*Charge).Received, (*Charge).Refunded
	done, denied, canceled                 = (*Charge).RefundDone, (*Charge).RefundDenied, (*Charge).RefundCanceled
	cash, undone, removed, restored        = (*Charge).ReceivedInCash, (*Charge).CashUndone, (*Charge).Deleted, (*Charge).Restored
	chargeback, dispute, won               = (*Charge).ChargebackRequested, (*Charge).ChargebackDispute, (*Charge).AwaitingChargebackReversal

	authorized = becomes(asaas.EventPaymentAuthorized, asaas.PaymentStatusAuthorized)
	analyzed   = becomes(asaas.EventPaymentAwaitingRiskAnalysis, asaas.PaymentStatusAwaitingRiskAnalysis)
	dunning    = becomes(asaas.EventPaymentDunningRequested, asaas.PaymentStatusDunningRequested)
	// No event tells that a boleto is asked back. The payer looks at the page that asks for a bank account.
	requested = becomes(asaas.EventPaymentCheckoutViewed, asaas.PaymentStatusRefundRequested)
)

func partly(cents int64) step {
	return func(c *Charge) []byte { return c.PartiallyRefunded(asaas.Cents(cents)) }
}

func asked(cents int64) step {
	return func(c *Charge) []byte { return c.RefundAsked(asaas.Cents(cents)) }
}

// becomes is an event of which only the status is known.
func becomes(eventType asaas.EventType, status asaas.PaymentStatus) step {
	return func(c *Charge) []byte {
		c.Now = c.Now.Add(time.Minute)
		return c.becomes(eventType, status)
	}
}

// held is a Pix of a natural person, which Asaas may hold back for 72 hours.
func held(c *Charge) []byte {
	c.pay()
	return becomes(asaas.EventPaymentConfirmed, asaas.PaymentStatusConfirmed)(c)
}

// upheld returns it: no refund stands in the charge.
func upheld(c *Charge) []byte {
	c.Now = c.Now.AddDate(0, 0, 3)
	return becomes(asaas.EventPaymentRefunded, asaas.PaymentStatusRefunded)(c)
}

func withInterest(c *Charge) []byte {
	c.Payment.OriginalValue, c.Payment.InterestValue = value.Of(c.Payment.Value), value.Of(asaas.Cents(312))
	c.Payment.Value = c.Payment.Value.Add(asaas.Cents(312))
	return c.Confirmed()
}

func dueLater(c *Charge) []byte {
	c.Payment.DueDate = day(c.Now.AddDate(0, 0, 7))
	return becomes(asaas.EventPaymentUpdated, asaas.PaymentStatusPending)(c)
}

func recovered(c *Charge) []byte {
	c.pay()
	c.Payment.PaymentDate = value.Of(day(c.Now))
	return becomes(asaas.EventPaymentDunningReceived, asaas.PaymentStatusDunningReceived)(c)
}

func anticipated(c *Charge) []byte {
	c.Payment.Anticipated = true
	return becomes(asaas.EventPaymentAnticipated, asaas.PaymentStatusConfirmed)(c)
}

func installment(billing asaas.BillingType, n int) func() *Charge {
	return func() *Charge { return NewInstallments(billing, asaas.Cents(30000), 3)[n] }
}

func renewal(n int) func() *Charge {
	return func() *Charge { return NewSubscription(pix, asaas.Cents(10000), n+1)[n] }
}
