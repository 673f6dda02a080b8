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

// lives are the possible histories of a charge, from its creation to its end.
var lives = []struct {
	why     string
	billing asaas.BillingType
	life    func(*asaastest.Charge) [][]byte
	want    []string // event types and statuses
}{
	{"a Pix that is refunded", asaas.BillingTypePix, func(c *asaastest.Charge) [][]byte {
		return [][]byte{c.Created(), c.Received(), c.Refunded()}
	}, []string{"CREATED PENDING", "RECEIVED RECEIVED", "REFUNDED REFUNDED"}},
	{"a boleto that is paid late", asaas.BillingTypeBoleto, func(c *asaastest.Charge) [][]byte {
		return [][]byte{c.Created(), c.Overdue(), c.Confirmed(), c.Received()}
	}, []string{"CREATED PENDING", "OVERDUE OVERDUE", "CONFIRMED CONFIRMED", "RECEIVED RECEIVED"}},
	{"a card, refunded in two parts", asaas.BillingTypeCreditCard, func(c *asaastest.Charge) [][]byte {
		return [][]byte{c.Created(), c.Confirmed(), c.PartiallyRefunded(asaas.Cents(1000)), c.Received(), c.Refunded()}
	}, []string{"CREATED PENDING", "CONFIRMED CONFIRMED", "PARTIALLY_REFUNDED CONFIRMED", "RECEIVED RECEIVED", "REFUNDED REFUNDED"}},
	{"a chargeback that is won", asaas.BillingTypeCreditCard, func(c *asaastest.Charge) [][]byte {
		return [][]byte{
			c.Created(), c.Confirmed(), c.Received(), c.ChargebackRequested(), c.ChargebackDispute(),
			c.AwaitingChargebackReversal(), c.Confirmed(), c.Received(),
		}
	}, []string{
		"CREATED PENDING", "CONFIRMED CONFIRMED", "RECEIVED RECEIVED", "CHARGEBACK_REQUESTED CHARGEBACK_REQUESTED",
		"CHARGEBACK_DISPUTE CHARGEBACK_DISPUTE", "AWAITING_CHARGEBACK_REVERSAL AWAITING_CHARGEBACK_REVERSAL",
		"CONFIRMED CONFIRMED", "RECEIVED RECEIVED",
	}},
	{"a chargeback that is lost", asaas.BillingTypeDebitCard, func(c *asaastest.Charge) [][]byte {
		return [][]byte{c.Created(), c.Confirmed(), c.ChargebackRequested(), c.Refunded()}
	}, []string{"CREATED PENDING", "CONFIRMED CONFIRMED", "CHARGEBACK_REQUESTED CHARGEBACK_REQUESTED", "REFUNDED REFUNDED"}},
	{"cash", asaas.BillingTypeUndefined, func(c *asaastest.Charge) [][]byte {
		return [][]byte{c.Created(), c.Overdue(), c.ReceivedInCash()}
	}, []string{"CREATED PENDING", "OVERDUE OVERDUE", "RECEIVED RECEIVED_IN_CASH"}},
	{"one that is removed and comes back", asaas.BillingTypeBoleto, func(c *asaastest.Charge) [][]byte {
		return [][]byte{c.Created(), c.Deleted(), c.Restored(), c.Received()}
	}, []string{"CREATED PENDING", "DELETED PENDING", "RESTORED PENDING", "RECEIVED RECEIVED"}},
}

var chargeID = regexp.MustCompile(`^pay_[1-9]_[A-Za-z0-9]{14}$`)

func TestTheEventsOfAChargeAgree(t *testing.T) {
	t.Parallel()
	for _, tt := range lives {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			c := asaastest.NewCharge(tt.billing, asaas.Cents(12990))
			var got []string
			ids := make(map[string]bool)
			var before time.Time
			for _, body := range tt.life(c) {
				e := handledAs(t, body)
				got = append(got, strings.TrimPrefix(string(e.Event), "PAYMENT_")+" "+string(e.Payment.Status))
				at, err := e.DateCreated.Time()
				if err != nil || !at.After(before) {
					t.Errorf("%s comes at %s, %v, not after %s", e.Event, at, err, before)
				}
				before, ids[e.ID] = at, true
				checkCharge(t, e, c.Payment.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(ids) != len(got) {
				t.Errorf("%d ids of events (-want +got):\n%s", len(ids), diff)
			}
		})
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
		if refunded = refunded.Add(r.Value.Or(asaas.Money{})); r.Status.Or("") != asaas.RefundStatusDone {
			t.Errorf("%s: a refund is %s", e.Event, r.Status.Or(""))
		}
	}
	if all := refunded == p.Value; all != (p.Status == asaas.PaymentStatusRefunded) || refunded.Cmp(p.Value) > 0 {
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
