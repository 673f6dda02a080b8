package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/optional"
)

func TestReconcileNamesWhatNeverCame(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	id, broken := a.application(t, 0)
	broken.Store(false)
	a.wait = atOnce
	a.fake.Advance(time.Hour) // the queue delivers all
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
	a.queue(t, "resume", id, "-yes")
	a.fake.Emit(c.Created()) // to which the webhook does not subscribe: Received is made, and is in no body
	known := c.Payment.ID
	c.Received()
	late := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
	late.Created()
	receivedUnseen(t, a, id, late.Received())

	window := []string{"reconcile", id, "-since", "2026-08-08T00:00:00-03:00", "-until", "2026-08-20T00:00:00-03:00"}
	if status, _, complaints := a.queue(t, window...); status != 2 || !strings.Contains(complaints, "DATABASE_URL is not set") {
		t.Errorf("without a database: exit status %d, %q", status, complaints)
	}
	a.env["DATABASE_URL"] = a.database
	status, out, complaints := a.queue(t, window...)
	says := late.Payment.ID + " is RECEIVED; missing: PAYMENT_RECEIVED since 2026-08-08\n"
	if status != 4 || !strings.Contains(out, says) || strings.Contains(out, known+" ") || !strings.Contains(out, "\ndone: ") {
		t.Errorf("exit status %d, prints %q, %q", status, out, complaints)
	}
	status, out, _ = a.queue(t, append(window, "-json")...)
	if status != 4 || !strings.Contains(out, `"difference":{"charge":"`+late.Payment.ID+`","state":"RECEIVED","missing":["PAYMENT_RECEIVED"]`) {
		t.Errorf("exit status %d, prints %q", status, out)
	}
	if status, _, complaints := a.queue(t, "reconcile", id); status != 2 || !strings.Contains(complaints, "-since is not given") {
		t.Errorf("without -since: exit status %d, %q", status, complaints)
	}
}

// receivedUnseen lets an event happen while the webhook is disabled.
func receivedUnseen(t *testing.T, a *account, id string, body []byte) {
	t.Helper()
	client := a.fake.Client()
	for _, enabled := range []bool{false, true} {
		if _, err := client.UpdateWebhook(t.Context(), id, asaas.WebhookUpdate{Enabled: optional.Of(enabled)}); err != nil {
			t.Fatal(err)
		}
		if !enabled {
			a.fake.Emit(body)
		}
	}
}
