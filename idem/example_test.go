package idem_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

const token = "a-token-of-32-characters-or-more"

const received = `{"id":"evt_d26e303b238e509335ac9ba210e51b0f&1","event":"PAYMENT_RECEIVED","dateCreated":"2026-11-20 10:00:00",` +
	`"payment":{"object":"payment","id":"pay_1","customer":"cus_1","value":129.90,"netValue":128.91,"billingType":"PIX",` +
	`"status":"RECEIVED","dateCreated":"2026-11-20","dueDate":"2026-11-20","externalReference":"order-1"}}`

// database returns a pool on an empty schema with the tables of idem and an
// application, and what closes it.
func database(ctx context.Context) (*pgxpool.Pool, func()) {
	url, err := exampleURL()
	if err != nil {
		log.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `do $$ begin execute format('drop schema %1$I cascade; create schema %1$I', current_schema()); end $$`); err != nil {
		log.Fatal(err)
	}
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `create table orders (id text primary key, paid numeric not null default 0);
		create table payments (event_id text primary key, charge_id text not null, amount numeric not null);
		insert into orders values ('order-1')`); err != nil {
		log.Fatal(err)
	}
	return pool, pool.Close
}

// deliver posts a body as Asaas does.
func deliver(h http.Handler, body string) {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/asaas", strings.NewReader(body))
	r.Header.Set("asaas-access-token", token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
}

// payOrder pays the order whose id was sent when the charge was made.
func payOrder(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	order := e.Payment.ExternalReference.Or("")
	if order == "" {
		return nil // a charge made by hand at Asaas, not one of ours
	}
	paid, err := tx.Exec(ctx, `update orders set paid = $1 where id = $2`, e.Payment.Value, order)
	if err == nil && paid.RowsAffected() == 0 {
		err = errNoOrder // nil would mean that the event is done for good
	}
	return err
}

// With WorkFirst an event that is done at the first try is done before the answer.
func Example_workFirst() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true

	deliver(inbox, received)
	deliver(inbox, received)

	var paid string
	if err := pool.QueryRow(ctx, `select paid::text from orders where id = 'order-1'`).Scan(&paid); err != nil {
		log.Fatal(err)
	}
	fmt.Println("paid", paid)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// paid 129.90
}

// Migrate makes the tables; run it at every start.
func ExampleMigrate() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	// Output: ready
}

// Tools such as goose read the migrations from the embedded files.
func Example_migrations() {
	files, err := idem.Migrations.ReadDir("migrations")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Name())
	}
	// Output: 00001_idem.sql
}

// What may be lost, such as waking a worker, happens after the commit.
func ExampleAfterCommit() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		idem.AfterCommit(ctx, func(context.Context) { fmt.Println("waking the worker for", e.Payment.ID) })
		return payOrder(ctx, tx, e)
	})
	inbox := idem.NewInbox(pool, events)

	deliver(inbox, received)
	drain(ctx, inbox)
	deliver(inbox, received)
	// Output:
	// 200 {"received":true}
	// waking the worker for pay_1
	// worker: PAYMENT_RECEIVED done
	// 200 {"received":true,"duplicate":true}
}

// A handler that needs no answer from the database declares its statements: they
// travel with COMMIT.
func ExampleExecAtCommit() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		idem.ExecAtCommit(ctx, `insert into payments values ($1, $2, $3) on conflict do nothing`, e.ID, e.Payment.ID, e.Payment.Value)
		return nil
	})
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)

	var booked string
	if err := pool.QueryRow(ctx, `select charge_id || ' ' || amount from payments`).Scan(&booked); err != nil {
		log.Fatal(err)
	}
	fmt.Println("booked:", booked)
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED done
	// booked: pay_1 129.90
}

// A handler that must know which account it works for asks its context.
func ExampleEventFrom() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher()
	events.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: "shop-1", Secrets: []string{token}}, {Scope: "shop-2", Secrets: []string{"another-token-of-32-characters-…"}}}, nil
	}
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		event, _ := idem.EventFrom(ctx)
		fmt.Println(event.Scope, event.Key)
		return payOrder(ctx, tx, e)
	})
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)
	// Output:
	// 200 {"received":true}
	// shop-1 pay_1
	// worker: PAYMENT_RECEIVED done
}

// An event type that is newer than this module gets a handler all the same.
func ExampleHandle() {
	events := asaas.NewDispatcher(token)
	idem.Handle(&events.Routes, "PAYMENT_SOMETHING_NEW", payOrder)
	events.Ignore("PAYMENT_BANK_SLIP_VIEWED", "PAYMENT_CHECKOUT_VIEWED")
	fmt.Println(events.Types())
	// Output: [PAYMENT_SOMETHING_NEW]
}

// An application with its own record of events runs handlers in its own
// transaction.
func ExampleDispatch() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher()
	events.OnPaymentReceived(payOrder)
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return events.Dispatch(ctx, tx, asaas.Identify([]byte(received)))
	})
	fmt.Println(err)
	// Output: <nil>
}

// Credentials that are printed or logged show no secret.
func ExampleCredentials() {
	c := idem.Credentials{Scope: "shop-1", Secrets: []string{token}}
	fmt.Println(c)
	// Output: {Scope:"shop-1" Secrets:1 redacted}
}
