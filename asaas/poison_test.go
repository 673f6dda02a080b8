package asaas_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// The number is in the README. Another customer pays just after an event came whose
// handler always fails.
func TestOnePoisonEventHoldsOtherCustomersInlineAndNotInAnInbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		inbox bool
		waits time.Duration // the other customer
	}{
		{"inline the queue waits until it is parked after 10 failures, on Asaas's schedule", false, 3*time.Hour + 50*time.Minute},
		{"an inbox has acknowledged it", true, 0},
	} {
		pool := idemtest.Pool(t)
		if err := idem.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		const poison = "pay_1_a1B2c3D4e5F6g7"
		handled := 0
		events := asaas.NewDispatcher(webhookToken)
		events.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
			if e.Payment.ID == poison {
				return errors.New("a mistake")
			}
			handled++
			return nil
		})
		processor, inbox := idem.NewProcessor(pool, events), idem.NewInbox(pool, events)
		processor.Logger, inbox.Logger = nil, nil
		fake := asaastest.New()
		defer fake.Close()
		webhook := asaastest.Webhook{Handler: processor, Token: webhookToken}
		if c.inbox {
			webhook.Handler = inbox
		}
		fake.AddWebhook(webhook)
		fake.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", poison)), asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_2_b2C3d4E5f6G7h8")))
		fake.Settle()
		work := func() {
			if err := inbox.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if work(); c.waits > 0 {
			fake.Advance(c.waits - time.Second)
			if work(); handled != 0 {
				t.Errorf("%s: the other customer waits less than %s", c.why, c.waits)
			}
			fake.Advance(time.Second)
			work()
		}
		if handled != 1 {
			t.Errorf("%s: the other customer's payment was handled %d times after %s", c.why, handled, c.waits)
		}
	}
}
