package asaastest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

var chargeID = regexp.MustCompile(`^pay_[1-9]_[A-Za-z0-9]{14}$`)

// told are the events and statuses of some lives, after CREATED PENDING.
var told = map[string]string{
	"a Pix, parts given back, then the rest":          "RECEIVED RECEIVED, PARTIALLY_REFUNDED RECEIVED, PARTIALLY_REFUNDED RECEIVED, REFUNDED REFUNDED",
	"a boleto, overdue, then due later":               "OVERDUE OVERDUE, UPDATED PENDING, CONFIRMED CONFIRMED, RECEIVED RECEIVED",
	"a card, a part given back before its money came": "CONFIRMED CONFIRMED, PARTIALLY_REFUNDED CONFIRMED, RECEIVED RECEIVED",
	"a chargeback, won": "CONFIRMED CONFIRMED, RECEIVED RECEIVED, CHARGEBACK_REQUESTED CHARGEBACK_REQUESTED, " +
		"CHARGEBACK_DISPUTE CHARGEBACK_DISPUTE, AWAITING_CHARGEBACK_REVERSAL AWAITING_CHARGEBACK_REVERSAL, RECEIVED RECEIVED",
	"a chargeback, not disputed":      "CONFIRMED CONFIRMED, CHARGEBACK_REQUESTED CHARGEBACK_REQUESTED, REFUNDED REFUNDED",
	"cash, undone":                    "RECEIVED RECEIVED_IN_CASH, RECEIVED_IN_CASH_UNDONE PENDING",
	"removed and restored, then paid": "DELETED PENDING, RESTORED PENDING, RECEIVED RECEIVED",
}

// Asaas's time, its id's number and what the last event shows are what a table of charges goes by.
func TestTheEventsOfALifeAgree(t *testing.T) {
	t.Parallel()
	names, statuses, ids := make(map[string]bool), make(map[asaas.PaymentStatus]bool), make(map[string]bool)
	bodies, known := 0, 0
	for _, life := range asaastest.Lives("order-1") {
		names[life.Name] = true
		var before time.Time
		var last *asaas.PaymentEvent
		var happened []string
		for _, body := range life.Bodies {
			last = handledAs(t, body)
			happened = append(happened, strings.TrimPrefix(string(last.Event), "PAYMENT_")+" "+string(last.Payment.Status))
			at, err := last.DateCreated.Time()
			if err != nil || !at.After(before) {
				t.Errorf("%s: %s comes at %s, %v, not after %s", life.Name, last.Event, at, err, before)
			}
			before, ids[last.ID], statuses[last.Payment.Status] = at, true, true
			bodies++
			checkCharge(t, last, life.Charge.Payment.ID)
			if last.Payment.ExternalReference.Or("") != "order-1" {
				t.Errorf("%s: %s is of %v", life.Name, last.Event, last.Payment.ExternalReference)
			}
		}
		if want, ok := told[life.Name]; ok {
			known++
			if diff := cmp.Diff("CREATED PENDING, "+want, strings.Join(happened, ", ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", life.Name, diff)
			}
		}
		if last.Payment.Status != life.Status || last.Payment.Deleted != life.Deleted {
			t.Errorf("%s ends %s, deleted %v; written down is %s, %v", life.Name, last.Payment.Status, last.Payment.Deleted, life.Status, life.Deleted)
		}
		if n := len(life.Requests("/webhooks/asaas", "token")); n != len(life.Bodies) {
			t.Errorf("%s: %d requests for %d events", life.Name, n, len(life.Bodies))
		}
	}
	if len(names) != len(asaastest.Lives("")) || len(ids) != bodies || known != len(told) {
		t.Errorf("%d names, %d ids of %d events, %d lives of the %d told", len(names), len(ids), bodies, known, len(told))
	}
	if len(statuses) != 15 {
		t.Errorf("the lives go through %d of the 15 statuses: %v", len(statuses), statuses)
	}
	if reference := asaastest.Lives("")[0].Charge.Payment.ExternalReference; !reference.IsNull() {
		t.Errorf("without a reference it is %v", reference)
	}
}

// handledAs takes a body to its handler, as it would be delivered.
func handledAs(t *testing.T, body []byte) (got *asaas.PaymentEvent) {
	t.Helper()
	parsed, err := asaas.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	d := asaas.NewDispatcher("a token")
	d.Watch.Every = 1
	d.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	if _, err := d.Route(asaas.Identify(body)); err != nil {
		t.Error(err)
	}
	if news := d.Drift(); len(news) > 0 {
		t.Errorf("it has what Asaas does not send: %v", news)
	}
	return parsed.(*asaas.PaymentEvent)
}

// checkCharge checks the rules that hold for a charge at any time.
func checkCharge(t *testing.T, e *asaas.PaymentEvent, id string) {
	t.Helper()
	p := e.Payment
	if p.ID != id || !chargeID.MatchString(p.ID) || len(p.ID) != 20 {
		t.Errorf("%s: the id is %s, want %s", e.Event, p.ID, id)
	}
	var refunded asaas.Money
	for _, r := range p.Refunds.Or(nil) {
		if r.Status.Or("") == asaas.RefundStatusDone {
			refunded = refunded.Add(r.Value.Or(asaas.Money{}))
		}
	}
	isRefunded := p.Status == asaas.PaymentStatusRefunded // a Pix that was held back has no refund
	if all := refunded == p.Value; all && !isRefunded || isRefunded && !all && refunded.Sign() != 0 || refunded.Cmp(p.Value) > 0 {
		t.Errorf("%s: %s of %s is refunded, and it is %s", e.Event, refunded, p.Value, p.Status)
	}
	_, settled := p.PaymentDate.Get()
	if p.Status == asaas.PaymentStatusConfirmed && settled || p.Status == asaas.PaymentStatusReceived && !settled {
		t.Errorf("%s: it is %s, and settled=%t", e.Event, p.Status, settled)
	}
	_, card := p.CreditCard.Get()
	_, pix := p.PixQrCodeID.Get()
	_, boleto := p.BankSlipURL.Get()
	if isCard := strings.HasSuffix(string(p.BillingType), "CARD"); card && !isCard || pix && p.BillingType != asaas.BillingTypePix || boleto != (p.BillingType == asaas.BillingTypeBoleto) {
		t.Errorf("%s: a %s has card=%t, Pix=%t, boleto=%t", e.Event, p.BillingType, card, pix, boleto)
	}
}

func TestWhatCannotHappenToAChargePanics(t *testing.T) {
	t.Parallel()
	one := asaas.Cents(100)
	for _, tt := range []struct {
		why     string
		billing asaas.BillingType
		life    func(*asaastest.Charge)
		want    string
	}{
		{"it does not exist", "PIX", func(c *asaastest.Charge) { c.Received() }, "let it be Created first"},
		{"it exists already", "PIX", func(c *asaastest.Charge) { c.Created(); c.Created() }, "the charge is PENDING after [PAYMENT_CREATED]"},
		{"nobody has paid", "PIX", func(c *asaastest.Charge) { c.Created(); c.Refunded() }, "PAYMENT_REFUNDED cannot come now"},
		{"it is refunded", "PIX", func(c *asaastest.Charge) { c.Created(); c.Received(); c.Refunded(); c.Received() }, "the charge is REFUNDED"},
		{"it is paid", "PIX", func(c *asaastest.Charge) { c.Created(); c.Received(); c.Overdue() }, "PAYMENT_OVERDUE cannot come now"},
		{"a Pix is not confirmed", "PIX", func(c *asaastest.Charge) { c.Created(); c.Confirmed() }, "let it be Received"},
		{"more than there is", "PIX", func(c *asaastest.Charge) { c.Created(); c.Received(); c.PartiallyRefunded(asaas.Cents(101)) }, "no part of the R$ 1.00"},
		{"all there is", "PIX", func(c *asaastest.Charge) { c.Created(); c.Received(); c.PartiallyRefunded(one) }, "call Refunded"},
		{"nothing", "PIX", func(c *asaastest.Charge) { c.Created(); c.Received(); c.PartiallyRefunded(asaas.Money{}) }, "no part"},
		{"a Pix has no chargeback", "PIX", func(c *asaastest.Charge) { c.Created(); c.Received(); c.ChargebackRequested() }, "a PIX has no chargeback"},
		{"nobody disputed", "CREDIT_CARD", func(c *asaastest.Charge) { c.Created(); c.Confirmed(); c.ChargebackDispute() }, "PAYMENT_CHARGEBACK_DISPUTE cannot"},
		{"it is removed", "BOLETO", func(c *asaastest.Charge) { c.Created(); c.Deleted(); c.Confirmed() }, "let it be Restored first"},
		{"it is not removed", "BOLETO", func(c *asaastest.Charge) { c.Created(); c.Restored() }, "the charge is not deleted"},
		{"no charges", "BOLETO", func(*asaastest.Charge) { asaastest.NewInstallments("BOLETO", one, 0) }, "into 0 charges"},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "asaastest: ") || !strings.Contains(said, tt.want) {
					t.Errorf("%s: it says %q, want %q", tt.why, said, tt.want)
				}
			}()
			tt.life(asaastest.NewCharge(tt.billing, one))
		}()
	}
}

func TestInstallmentsAddUpToTheTotal(t *testing.T) {
	t.Parallel()
	for _, cents := range []int64{1, 10000, 10001, 99999} {
		var sum asaas.Money
		plan := asaastest.NewInstallments(asaas.BillingTypeCreditCard, asaas.Cents(cents), 3)
		for i, c := range plan {
			e := handledAs(t, c.Created())
			sum = sum.Add(e.Payment.Value)
			if e.Payment.InstallmentNumber.Or(0) != asaas.Int(i+1) || e.Payment.Installment != plan[0].Payment.Installment {
				t.Errorf("charge %d is number %d of %v", i+1, e.Payment.InstallmentNumber.Or(0), e.Payment.Installment)
			}
		}
		if sum != asaas.Cents(cents) {
			t.Errorf("the charges add up to %s, want %s", sum, asaas.Cents(cents))
		}
	}
}

// A charge's events agree with each other, unlike those that Event makes one by
// one. Here a card is paid, and refunded after the money came in.
func ExampleCharge() {
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(12990))
	for _, body := range [][]byte{
		charge.Created(), charge.Confirmed(), charge.PartiallyRefunded(asaas.Cents(3000)), charge.Received(), charge.Refunded(),
	} {
		event, err := asaas.Parse(body) // or fake.Emit(body), or asaastest.Request(path, token, body)
		if err != nil {
			fmt.Println(err)
			return
		}
		e := event.(*asaas.PaymentEvent)
		fmt.Println(e.DateCreated, e.Event, e.Payment.Status, len(e.Payment.Refunds.Or(nil)))
	}
	// Output:
	// 2026-08-08 20:45:13 PAYMENT_CREATED PENDING 0
	// 2026-08-08 20:47:13 PAYMENT_CONFIRMED CONFIRMED 0
	// 2026-08-08 21:47:13 PAYMENT_PARTIALLY_REFUNDED CONFIRMED 1
	// 2026-09-09 03:00:00 PAYMENT_RECEIVED RECEIVED 1
	// 2026-09-09 04:00:00 PAYMENT_REFUNDED REFUNDED 2
}

func ExampleNewInstallments() {
	for _, charge := range asaastest.NewInstallments(asaas.BillingTypeCreditCard, asaas.Cents(10000), 3) {
		p := charge.Payment
		fmt.Println(p.InstallmentNumber.Or(0), p.Value, p.DueDate)
	}
	// Output:
	// 1 33.33 2026-08-15
	// 2 33.33 2026-09-15
	// 3 33.34 2026-10-15
}

func TestARefundEndsInEachWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked  int64
		end    func(*asaastest.Charge) []byte
		status asaas.PaymentStatus
		refund asaas.RefundStatus
		event  asaas.EventType
	}{
		"a part is given back":  {3000, (*asaastest.Charge).RefundDone, "RECEIVED", "DONE", asaas.EventPaymentPartiallyRefunded},
		"all is given back":     {10000, (*asaastest.Charge).RefundDone, "REFUNDED", "DONE", asaas.EventPaymentRefunded},
		"all is denied":         {10000, (*asaastest.Charge).RefundDenied, "RECEIVED", "CANCELLED", asaas.EventPaymentRefundDenied},
		"a part is called off":  {3000, (*asaastest.Charge).RefundCanceled, "RECEIVED", "CANCELLED", asaas.EventPaymentUpdated},
		"everything called off": {10000, (*asaastest.Charge).RefundCanceled, "RECEIVED", "CANCELLED", asaas.EventPaymentUpdated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			charge := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
			charge.Created()
			charge.Received()
			charge.RefundAsked(asaas.Cents(c.asked))
			refunds := charge.Payment.Refunds.Or(nil)
			if len(refunds) != 1 || refunds[0].Status.Or("") != asaas.RefundStatusPending {
				t.Errorf("asked back, the refunds are %v", refunds)
			}
			e, err := asaas.Parse(c.end(charge))
			if err != nil {
				t.Fatal(err)
			}
			p := e.(*asaas.PaymentEvent)
			if got := p.Payment.Refunds.Or(nil)[0].Status.Or(""); p.Event != c.event || p.Payment.Status != c.status || got != c.refund {
				t.Errorf("%s, %s, the refund is %s; want %s, %s, %s", p.Event, p.Payment.Status, got, c.event, c.status, c.refund)
			}
		})
	}
}

func TestCashThatIsUndoneIsToBePaidAgain(t *testing.T) {
	t.Parallel()
	for want, late := range map[asaas.PaymentStatus]bool{"PENDING": false, "OVERDUE": true} {
		charge := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
		charge.Created()
		if late {
			charge.Overdue()
		}
		charge.ReceivedInCash()
		charge.CashUndone()
		if got := charge.Payment.Status; got != want || !charge.Payment.PaymentDate.IsNull() {
			t.Errorf("the charge is %s, paid on %v; want %s", got, charge.Payment.PaymentDate, want)
		}
	}
}

func TestTheChargesOfASubscriptionAreAMonthApart(t *testing.T) {
	t.Parallel()
	all := asaastest.NewSubscription(asaas.BillingTypePix, asaas.Cents(5000), 3)
	var made []asaas.Date
	for _, c := range all {
		made = append(made, c.Payment.DateCreated)
		if c.Payment.Subscription != all[0].Payment.Subscription || c.Payment.Subscription.Or("") == "" {
			t.Errorf("a charge is of the subscription %v", c.Payment.Subscription)
		}
	}
	if len(made) != 3 || made[0] != "2026-08-08" || made[1] != "2026-09-08" || made[2] != "2026-10-08" {
		t.Errorf("the charges were made on %v", made)
	}
}
