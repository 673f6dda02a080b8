package idemtest_test

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
	"github.com/paghooks/paghooks/idem/value"
)

// The application: it copies a charge's status to its order, and books each event.
func newAccounts() *asaas.Dispatcher {
	events := asaas.NewDispatcher("token")
	events.OnPaymentReceived(copyAndBook)
	events.OnPaymentRefunded(copyAndBook)
	return events
}

func copyAndBook(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	// The state is that of the newest event: a late one changes nothing.
	const copied = `update orders set status = $1, status_at = $2 where id = $3 and status_at <= $2`
	if _, err := tx.Exec(ctx, copied, e.Payment.Status, e.DateCreated, e.Payment.ExternalReference); err != nil {
		return err
	}
	// The ledger has a fact of each event, and leaves none out: money that came late came.
	_, err := tx.Exec(ctx, `insert into ledger (event_id, type, amount) values ($1, $2, $3) on conflict do nothing`,
		e.ID, e.Event, e.Payment.Value)
	return err
}

// Its test, which runs as TestAnyOrderPassesTheExample here.
func accountsAreRightInAnyOrder(t *testing.T) {
	source := func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), `
			create table orders (id text primary key, status text not null default 'open', status_at timestamptz not null default '-infinity');
			create table ledger (event_id text primary key, type text not null, amount numeric(12, 2) not null);
			insert into orders (id) values ('order-1')`); err != nil {
			t.Fatal(err)
		}
		return newAccounts()
	}
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(2990))
	charge.Payment.ExternalReference = value.Of("order-1")
	charge.Created() // has no handler
	var deliveries []*http.Request
	for _, body := range [][]byte{charge.Received(), charge.Refunded()} {
		deliveries = append(deliveries, asaastest.Request("/webhooks/asaas", "token", body))
	}
	check := func(ctx context.Context, pool *pgxpool.Pool) error {
		var status, booked string
		err := pool.QueryRow(ctx, `select status, (select string_agg(type || ' ' || amount, ', ' order by type) from ledger) from orders`).Scan(&status, &booked)
		if err == nil && (status != "REFUNDED" || booked != "PAYMENT_RECEIVED 29.90, PAYMENT_REFUNDED 29.90") {
			err = fmt.Errorf("the order is %s, and booked are %s", status, booked)
		}
		return err
	}
	idemtest.AnyOrder(t, source, deliveries, check)
}

func ExampleAnyOrder() {
	_ = accountsAreRightInAnyOrder // in a _test.go file of yours: TestAccountsAreRightInAnyOrder
}
