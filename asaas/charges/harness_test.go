package charges_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// newTables returns a pool with the tables, complete from the first charge on, and a ledger. The charges of tests are
// made on days of their own.
func newTables(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.Pool(t)
	migrate(t, pool)
	return pool
}

func migrate(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, ofLedger := pool.Exec(t.Context(), ledgerTable)
	err := errors.Join(idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool), ofLedger)
	for _, scope := range []string{"", "shop-1", "shop-2"} {
		err = errors.Join(err, charges.Filled(t.Context(), pool, scope, time.Time{}))
	}
	if err != nil {
		t.Fatal(err)
	}
}

const ledgerTable = `create table ledger (scope text, charge text, paid numeric, received numeric, before text, after text)`

// book is a ledger of all changes.
func book(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	_, err := tx.Exec(ctx, `insert into ledger values ($1, $2, $3, $4, $5, $6)`,
		c.After.Scope, c.After.ID, c.Paid(), c.Received(), string(c.Before.Status), string(c.After.Status))
	return err
}

// newEvents returns a dispatcher with a handler of the family.
func newEvents(apply func(context.Context, pgx.Tx, charges.Change) error) *asaas.Dispatcher {
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Handler(apply))
	return events
}

// dispatch handles an event of an account in tx.
func dispatch(ctx context.Context, tx pgx.Tx, events *asaas.Dispatcher, scope string, body []byte) error {
	e := asaas.Identify(body)
	e.Scope = scope
	return idem.Dispatch(ctx, tx, events, e)
}

// handle handles an event of an account in a transaction of its own.
func handle(t testing.TB, pool *pgxpool.Pool, events *asaas.Dispatcher, scope string, body []byte) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return dispatch(t.Context(), tx, events, scope, body) })
}

// query returns one text of the tables.
func query(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (text string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select coalesce((`+sql+`)::text, 'null')`, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// deliver delivers a body by HTTP, has it processed, and returns the event's state and error.
func deliver(t testing.TB, pool *pgxpool.Pool, events *asaas.Dispatcher, body []byte) (state, lastError string) {
	t.Helper()
	p := idem.NewInbox(pool, events)
	p.Logger = nil
	w := httptest.NewRecorder()
	p.ServeHTTP(w, asaastest.Request("/webhooks/asaas", "token", body))
	if err := p.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := pool.QueryRow(t.Context(), `select state, coalesce(last_error, '') from idem_events where event = 'asaas//' || $1`, asaas.Identify(body).ID).Scan(&state, &lastError)
	if err != nil {
		t.Fatalf("the answer was %d: %v", w.Code, err)
	}
	return state, lastError
}
