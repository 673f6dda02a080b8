package idemtest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// The application, which receives through idem.NewInbox(pool, newBookings()): its
// workers book what was paid.
func newBookings() *zeltapay.Dispatcher {
	events := zeltapay.NewDispatcher("secret")
	events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		amount, _ := e.Amount()
		_, err := tx.Exec(ctx, `insert into bookings (link, cents) values ($1, $2)`, e.LinkID(), int64(amount))
		return err
	})
	return events
}

// Its test, which runs as TestExactlyOnceInboxPassesAZeltaPayHandler here.
func paymentIsBookedOnce(t *testing.T) {
	source := func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), `create table bookings (link text, cents bigint)`); err != nil {
			t.Fatal(err)
		}
		return newBookings()
	}
	body := zeltapaytest.Event("payment.success", zeltapaytest.Set("transaction.amount", 2990))
	deliveries := []*http.Request{zeltapaytest.Request("/webhooks/zeltapay", "secret", body)}
	check := func(ctx context.Context, pool *pgxpool.Pool) error {
		var n, cents int
		err := pool.QueryRow(ctx, `select count(*), coalesce(sum(cents), 0) from bookings`).Scan(&n, &cents)
		if err == nil && (n != 1 || cents != 2990) {
			err = fmt.Errorf("%d bookings of %d cents, want 1 of 2990", n, cents)
		}
		return err
	}
	idemtest.ExactlyOnceInbox(t, source, deliveries, check)
}

func ExampleExactlyOnceInbox() {
	_ = paymentIsBookedOnce // in a _test.go file of yours: TestPaymentIsBookedOnce
}
