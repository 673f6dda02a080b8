// Package sqlc tests that an event's fields go through code that sqlc generated,
// to the database and back: with this module's types, and with sqlc's own.
package sqlc_test

// To generate again, without cgo: CGO_ENABLED=0 go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.30.0 generate

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/examples/sqlc/orders"
	"github.com/paghooks/paghooks/examples/sqlc/plain"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

const body = `{"id":"evt_1","event":"PAYMENT_RECEIVED","payment":{"id":"pay_1_a1B2c3D4e5F6g7","status":"RECEIVED","value":29.9,"netValue":28.91,"dueDate":"2026-08-08",
	"paymentDate":"2026-08-07","lastInvoiceViewedDate":"2026-08-06T23:30:00Z","description":null}}`

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.Pool(t)
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), string(schema)); err != nil {
		t.Fatal(err)
	}
	return pool
}

// handled runs h as a handler of an event.
func handled(t *testing.T, pool *pgxpool.Pool, h func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error) {
	t.Helper()
	d := asaas.NewDispatcher()
	d.OnPaymentReceived(h)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return d.Dispatch(t.Context(), tx, asaas.Identify([]byte(body)))
	}); err != nil {
		t.Fatal(err)
	}
}

func TestOverriddenTypesGoThereAndBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	handled(t, pool, func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		p := e.Payment
		return orders.New(tx).BookPayment(ctx, orders.BookPaymentParams{
			ChargeID: p.ID, Amount: p.Value, Net: p.NetValue, DueOn: p.DueDate,
			PaidOn: p.PaymentDate, ViewedAt: p.LastInvoiceViewedDate, Note: p.Description,
		})
	})
	got, err := orders.New(pool).GetOrder(t.Context(), "pay_1_a1B2c3D4e5F6g7")
	want := orders.Order{
		ChargeID: "pay_1_a1B2c3D4e5F6g7", Amount: asaas.Cents(2990), Net: value.Of(asaas.Cents(2891)), DueOn: "2026-08-08",
		PaidOn: value.Of(asaas.Date("2026-08-07")), ViewedAt: value.Of(asaas.DateTime("2026-08-06T20:30:00-03:00")), Note: value.Null[string](),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// paid sets the order to the sum of its charges. :execrows says whether the order is there.
func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (int64, error) {
	if o.Kind != charges.Reference {
		return 0, nil
	}
	set := orders.SetPaidParams{Paid: o.Paid, Settled: o.Settled, ID: o.Name}
	return orders.New(tx).SetPaid(ctx, set)
}

func TestAnOrderIsSetAndOneThatIsNotStoredIsAnError(t *testing.T) {
	t.Parallel()
	pool := database(t)
	err := errors.Join(charges.Migrate(t.Context(), pool), charges.Filled(t.Context(), pool, "", time.Time{}))
	if _, failed := pool.Exec(t.Context(), `insert into purchases (id) values ('order-1')`); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	events := asaas.NewDispatcher()
	events.OnPayment(charges.Orders(paid))
	for order, want := range map[string]bool{"order-1": true, "order-2": false, "": true} {
		charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(2990))
		charge.Payment.ExternalReference = value.Of(order)
		charge.Created()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return idem.Dispatch(t.Context(), tx, events, asaas.Identify(charge.Received()))
		})
		if (err == nil) != want {
			t.Errorf("%s: %v", order, err)
		}
	}
	var is, settled asaas.Money
	if err := pool.QueryRow(t.Context(), `select paid, settled from purchases`).Scan(&is, &settled); err != nil || is != asaas.Cents(2990) || settled != is {
		t.Errorf("order-1 is paid with %s, settled with %s, %v", is, settled, err)
	}
}

func TestPlainTypesAreOneCallAway(t *testing.T) {
	t.Parallel()
	pool := database(t)
	handled(t, pool, func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) (err error) {
		p, params := e.Payment, plain.BookPaymentParams{ChargeID: e.Payment.ID, Note: e.Payment.Description.Ptr()}
		for _, convert := range []func() error{
			func() error { params.Amount, err = p.Value.NumericValue(); return err },
			func() error { params.Net, err = p.NetValue.NumericValue(); return err },
			func() error { params.DueOn, err = p.DueDate.DateValue(); return err },
			func() error { params.PaidOn, err = p.PaymentDate.DateValue(); return err },
			func() error { params.ViewedAt, err = p.LastInvoiceViewedDate.TimestamptzValue(); return err },
		} {
			if err := convert(); err != nil {
				return err
			}
		}
		return plain.New(tx).BookPayment(ctx, params)
	})
	got, err := plain.New(pool).GetOrder(t.Context(), "pay_1_a1B2c3D4e5F6g7")
	if err != nil {
		t.Fatal(err)
	}
	var amount asaas.Money
	var due asaas.Date
	var viewed value.Optional[asaas.DateTime]
	for _, err := range []error{amount.ScanNumeric(got.Amount), due.ScanDate(got.DueOn), viewed.ScanTimestamptz(got.ViewedAt)} {
		if err != nil {
			t.Error(err)
		}
	}
	if amount != asaas.Cents(2990) || due != "2026-08-08" || viewed.OrZero() != "2026-08-06T20:30:00-03:00" || got.Note != nil {
		t.Errorf("got %+v", got)
	}
	if err := amount.ScanNumeric(pgtype.Numeric{}); err == nil {
		t.Error("NULL is an amount")
	}
}
