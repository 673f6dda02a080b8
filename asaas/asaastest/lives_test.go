package asaastest_test

import (
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// Asaas's time, its id's number and what the last event shows are what a table of charges goes by.
func TestTheEventsOfALifeAgree(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	statuses := make(map[asaas.PaymentStatus]bool)
	for _, life := range asaastest.Lives("order-1") {
		names[life.Name] = true
		var before string
		var last *asaas.PaymentEvent
		for _, body := range life.Bodies {
			parsed, err := asaas.Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			last = parsed.(*asaas.PaymentEvent)
			if now := string(last.DateCreated); now <= before {
				t.Errorf("%s: %s comes at %s, after %s", life.Name, last.Event, now, before)
			} else {
				before = now
			}
			statuses[last.Payment.Status] = true
			if last.Payment.ID != life.Charge.Payment.ID || last.Payment.ExternalReference.Or("") != "order-1" {
				t.Errorf("%s: %s is about %s of %v", life.Name, last.Event, last.Payment.ID, last.Payment.ExternalReference)
			}
		}
		if last.Payment.Status != life.Status || last.Payment.Deleted != life.Deleted {
			t.Errorf("%s ends %s, deleted %v; written down is %s, %v", life.Name, last.Payment.Status, last.Payment.Deleted, life.Status, life.Deleted)
		}
		if n := len(life.Requests("/webhooks/asaas", "token")); n != len(life.Bodies) {
			t.Errorf("%s: %d requests for %d events", life.Name, n, len(life.Bodies))
		}
	}
	if len(names) != len(asaastest.Lives("")) {
		t.Error("two lives have one name")
	}
	if len(statuses) != 15 {
		t.Errorf("the lives go through %d of the 15 statuses: %v", len(statuses), statuses)
	}
	if reference := asaastest.Lives("")[0].Charge.Payment.ExternalReference; !reference.IsNull() {
		t.Errorf("without a reference it is %v", reference)
	}
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
