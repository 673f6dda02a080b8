package idemtest_test

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
	table "github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// The application: it adds what is paid of a charge to its order.
func newAccounts() *asaas.Dispatcher {
	events := asaas.NewDispatcher("token")
	events.OnPayment(table.Handler(addPaid))
	return events
}

func addPaid(ctx context.Context, tx pgx.Tx, c table.Change) error {
	tag, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2`, c.Paid(), c.After.ExternalReference)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("the order of charge %s is not stored", c.After.ID)
	}
	return err
}

// Its test, which runs as TestAnyOrderPassesTheExample here.
func accountsAreRightInAnyOrder(t *testing.T) {
	source := func(pool *pgxpool.Pool) idem.Source {
		_, err := pool.Exec(t.Context(), `create table orders (id text primary key, paid numeric not null default 0); insert into orders (id) values ('order-1')`)
		if err := errors.Join(err, table.Migrate(t.Context(), pool), table.Filled(t.Context(), pool, "", time.Time{})); err != nil {
			t.Fatal(err)
		}
		return newAccounts()
	}
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	charge.Payment.ExternalReference = value.Of("order-1")
	var deliveries []*http.Request
	for _, body := range [][]byte{charge.Created(), charge.Received(), charge.PartiallyRefunded(asaas.Cents(1000)), charge.PartiallyRefunded(asaas.Cents(2000))} {
		deliveries = append(deliveries, asaastest.Request("/webhooks/asaas", "token", body))
	}
	check := func(ctx context.Context, pool *pgxpool.Pool) error {
		var paid string
		err := pool.QueryRow(ctx, `select paid::text from orders`).Scan(&paid)
		if err == nil && paid != "70.00" {
			err = fmt.Errorf("order-1 is paid with %s, want 70.00", paid)
		}
		return err
	}
	idemtest.AnyOrder(t, source, deliveries, check)
}

func ExampleAnyOrder() {
	_ = accountsAreRightInAnyOrder // in a _test.go file of yours: TestAccountsAreRightInAnyOrder
}
