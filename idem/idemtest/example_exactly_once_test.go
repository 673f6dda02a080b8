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
)

// The application: what a payment brings is added to the customer's balance.
func newDispatcher() *asaas.Dispatcher {
	events := asaas.NewDispatcher("token")
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		tag, err := tx.Exec(ctx, `update balances set payments = payments + 1 where customer = $1`, e.Payment.Customer)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("customer %s has no balance", e.Payment.Customer)
		}
		return err
	})
	return events
}

// Its test, which runs as TestExactlyOncePassesAnAsaasHandler here.
func paymentIsAddedOnce(t *testing.T) {
	source := func(pool *pgxpool.Pool) idem.Source {
		const tables = `create table balances (customer text, payments int); insert into balances values ('cus_1', 0)`
		if _, err := pool.Exec(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		return newDispatcher()
	}
	body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.customer", "cus_1"))
	deliveries := []*http.Request{asaastest.Request("/webhooks/asaas", "token", body)}
	check := func(ctx context.Context, pool *pgxpool.Pool) error {
		var payments int
		err := pool.QueryRow(ctx, `select payments from balances`).Scan(&payments)
		if err == nil && payments != 1 {
			err = fmt.Errorf("the balance holds %d payments, want 1", payments)
		}
		return err
	}
	idemtest.ExactlyOnce(t, source, deliveries, check)
}

func ExampleExactlyOnce() {
	_ = paymentIsAddedOnce // in a _test.go file of yours: TestPaymentIsAddedOnce
}
