package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/optional"
)

// The two kinds of handlers are those of the package comment.
func TestTheHandlersOfThePackageCommentAreRightInAnyOrder(t *testing.T) {
	t.Parallel()
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(2990))
	charge.Payment.ExternalReference = optional.Of("order-1")
	charge.Created()
	foreign := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(100)) // names no order
	foreign.Created()
	var deliveries []*http.Request
	for _, body := range [][]byte{charge.Confirmed(), charge.Received(), charge.Refunded(), foreign.Received()} {
		deliveries = append(deliveries, asaastest.Request("/webhooks/asaas", "token", body))
	}
	source := func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), recipeTables); err != nil {
			t.Error(err)
		}
		events := asaas.NewDispatcher("token")
		events.OnPaymentConfirmed(all(markPaid, copyState))
		events.OnPaymentReceived(all(markPaid, copyState))
		events.OnPaymentRefunded(copyState)
		return events
	}
	idemtest.AnyOrder(t, source, deliveries, func(ctx context.Context, pool *pgxpool.Pool) error {
		var got string
		err := pool.QueryRow(ctx, `select string_agg(coalesce(order_id, 'no order') || ' ' || value || ' ' || (paid_at is not null) || ' ' || status, ', ' order by value desc)
			from charges join states on charge = id`).Scan(&got)
		if want := "order-1 29.90 true REFUNDED, no order 1.00 true RECEIVED"; err == nil && got != want {
			err = fmt.Errorf("the tables hold %q, want %q", got, want)
		}
		return err
	})
}

const recipeTables = `
	create table charges (id text primary key, order_id text, value numeric, paid_at timestamptz);
	create table states (charge text primary key, status text, status_at timestamptz)`

// One reference has twelve boletos, of which the first is paid.
func TestAnOrderOfTwelveBoletosIsNotPaidByTheFirst(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if _, err := pool.Exec(t.Context(), recipeTables); err != nil {
		t.Fatal(err)
	}
	paid := func(charges ...*asaastest.Charge) (sum string) {
		for _, c := range charges {
			e := &asaas.PaymentEvent{Payment: c.Payment}
			if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return markPaid(t.Context(), tx, e) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := pool.QueryRow(t.Context(), `select sum(value)::text from charges where order_id = 'order-1' and paid_at is not null`).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	all := asaastest.NewInstallments(asaas.BillingTypeBoleto, asaas.Cents(120000), 12)
	for _, c := range all {
		c.Payment.ExternalReference = optional.Of("order-1")
	}
	if got := paid(all[0]); got != "100.00" {
		t.Errorf("after the first boleto %s is paid, want 100.00", got)
	}
	if got := paid(all...); got != "1200.00" {
		t.Errorf("after all boletos %s is paid, want 1200.00", got)
	}
}

// all calls handlers one after the other.
func all(handlers ...idem.Handler[*asaas.PaymentEvent]) idem.Handler[*asaas.PaymentEvent] {
	return func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		for _, h := range handlers {
			if err := h(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	}
}

func markPaid(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into charges (id, order_id, value, paid_at) values ($1, $2, $3, now())
		on conflict (id) do update set paid_at = coalesce(charges.paid_at, excluded.paid_at)`,
		e.Payment.ID, e.Payment.ExternalReference, e.Payment.Value)
	return err
}

func copyState(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into states as s (charge, status, status_at) values ($1, $2, coalesce($3::timestamptz, '-infinity'))
		on conflict (charge) do update set status = excluded.status, status_at = greatest(s.status_at, $3)
		where s.status_at <= coalesce($3, now())`, e.Payment.ID, e.Payment.Status, e.DateCreated)
	return err
}

func TestAStateIsCopiedUnlessTheEventIsOlder(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if _, err := pool.Exec(t.Context(), recipeTables); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, at1, at2, want string
	}{
		{"newer", "2026-11-20 10:00:00", "2026-11-20 10:00:01", "REFUNDED"},
		{"in the same second, which comes last", "2026-11-20 10:00:00", "2026-11-20 10:00:00", "REFUNDED"},
		{"older", "2026-11-20 10:00:00", "2026-11-20 09:59:59", "RECEIVED"},
		{"without a time it is now", "2026-11-20 10:00:00", "", "REFUNDED"},
		{"after one without a time", "", "2026-11-20 10:00:00", "REFUNDED"},
		{"neither has a time", "", "", "REFUNDED"},
	} {
		if _, err := pool.Exec(t.Context(), `delete from states`); err != nil {
			t.Fatal(err)
		}
		for _, e := range []struct {
			status asaas.PaymentStatus
			at     string
		}{{"RECEIVED", c.at1}, {"REFUNDED", c.at2}} {
			event := &asaas.PaymentEvent{Envelope: asaas.Envelope{DateCreated: asaas.DateTime(e.at)}}
			event.Payment.ID, event.Payment.Status = "pay_1", e.status
			if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return copyState(t.Context(), tx, event) }); err != nil {
				t.Fatal(err)
			}
		}
		var got string
		if err := pool.QueryRow(t.Context(), `select status from states`).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s: the status is %s, %v; want %s", c.why, got, err, c.want)
		}
	}
}

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
