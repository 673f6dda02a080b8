package asaas_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/optional"
)

// The three kinds of handlers are those of the package comment.
func TestTheHandlersOfThePackageCommentAreRightInAnyOrder(t *testing.T) {
	t.Parallel()
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(2990))
	charge.Payment.ExternalReference = optional.Of("order-1")
	charge.Created()
	foreign := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(100)) // made by hand in Asaas
	foreign.Created()
	var deliveries []*http.Request
	for _, body := range [][]byte{charge.Confirmed(), charge.Received(), charge.Refunded(), foreign.Received()} {
		deliveries = append(deliveries, asaastest.Request("/webhooks/asaas", "token", body))
	}
	source := func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), `
			create table orders (id text primary key, paid_at timestamptz, status text not null default 'open', status_at timestamptz not null default '-infinity');
			create table ledger (event_id text primary key, charge_id text, type text, amount numeric);
			insert into orders (id) values ('order-1'), ('order-2')`); err != nil {
			t.Error(err)
		}
		events := asaas.NewDispatcher("token")
		events.OnPaymentConfirmed(all(markPaid, book, copyState))
		events.OnPaymentReceived(all(markPaid, book, copyState))
		events.OnPaymentRefunded(all(book, copyState))
		return events
	}
	idemtest.AnyOrder(t, source, deliveries, func(ctx context.Context, pool *pgxpool.Pool) error {
		var got string
		err := pool.QueryRow(ctx, `select string_agg(id || ' ' || (paid_at is not null) || ' ' || status, ', ' order by id)
			|| ', booked ' || (select count(*) || ' ' || coalesce(sum(amount), 0) from ledger) from orders`).Scan(&got)
		if want := "order-1 true REFUNDED, order-2 false open, booked 4 90.70"; err == nil && got != want {
			err = fmt.Errorf("the tables hold %q, want %q", got, want)
		}
		return err
	})
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
	order := e.Payment.ExternalReference.Or("")
	if order == "" {
		return nil // a charge made by hand in Asaas, not one of ours
	}
	paid, err := tx.Exec(ctx, `update orders set paid_at = coalesce(paid_at, now()) where id = $1`, order)
	if err == nil && paid.RowsAffected() == 0 {
		err = fmt.Errorf("the order of charge %s is not stored", e.Payment.ID)
	}
	return err
}

func book(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into ledger (event_id, charge_id, type, amount) values ($1, $2, $3, $4) on conflict do nothing`,
		e.ID, e.Payment.ID, e.Event, e.Payment.Value)
	return err
}

func copyState(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	order := e.Payment.ExternalReference.Or("")
	if order == "" {
		return nil
	}
	copied, err := tx.Exec(ctx, `update orders set
		status = case when status_at <= coalesce($2, now()) then $1 else status end,
		status_at = greatest(status_at, $2)
		where id = $3`, e.Payment.Status, e.DateCreated, order)
	if err == nil && copied.RowsAffected() == 0 {
		err = fmt.Errorf("the order of charge %s is not stored", e.Payment.ID)
	}
	return err
}

func TestAStateIsCopiedUnlessTheEventIsOlder(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `create table orders (id text primary key, status text not null default 'open', status_at timestamptz not null default '-infinity')`); err != nil {
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
		if _, err := pool.Exec(t.Context(), `delete from orders; insert into orders (id) values ('order-1')`, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		for _, e := range []struct {
			status asaas.PaymentStatus
			at     string
		}{{"RECEIVED", c.at1}, {"REFUNDED", c.at2}} {
			event := &asaas.PaymentEvent{Envelope: asaas.Envelope{DateCreated: asaas.DateTime(e.at)}}
			event.Payment.ExternalReference, event.Payment.Status = optional.Of("order-1"), e.status
			if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return copyState(t.Context(), tx, event) }); err != nil {
				t.Fatal(err)
			}
		}
		var got string
		if err := pool.QueryRow(t.Context(), `select status from orders`).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s: the status is %s, %v; want %s", c.why, got, err, c.want)
		}
	}
}
