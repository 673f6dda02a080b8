package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

const (
	token = "river-example-asaas-token"
	body  = `{"id":"evt_1&1","event":"PAYMENT_RECEIVED","dateCreated":"2026-11-22 09:00:00","payment":{"object":"payment","id":"pay_1","status":"RECEIVED","value":10}}`
)

// open makes the app. Of what it logs, warnings with the expected texts are no failure.
func open(t *testing.T, send func(context.Context, Receipt) error, expected ...string) (*app, *pgxpool.Pool) {
	t.Helper()
	pool := idemtest.Pool(t)
	a, err := newApp(t.Context(), pool, token, send)
	if err != nil {
		t.Fatal(err)
	}
	a.inbox.Logger = testkit.NoWarnings(t, expected...)
	return a, pool
}

func deliver(t *testing.T, a *app, want int) {
	t.Helper()
	deliverBody(t, a, body, want)
}

func deliverBody(t *testing.T, a *app, body string, want int) {
	t.Helper()
	w := httptest.NewRecorder()
	a.inbox.ServeHTTP(w, asaastest.Request("/webhooks/asaas", token, []byte(body)))
	if w.Code != want {
		t.Errorf("the delivery was answered %d, want %d: %s", w.Code, want, w.Body)
	}
	if err := a.inbox.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool) (payments, jobs int) {
	t.Helper()
	const both = `select (select count(*) from payments), (select count(*) from river_job where kind = 'receipt')`
	if err := pool.QueryRow(t.Context(), both).Scan(&payments, &jobs); err != nil {
		t.Fatal(err)
	}
	return payments, jobs
}

// Names of tests are short here: they are part of the schema's, which River has in
// the name of its channel, and that has 63 bytes at most.

func TestEventEnqueuesOneJob(t *testing.T) {
	t.Parallel()
	sent := make(chan Receipt, 10)
	a, pool := open(t, func(_ context.Context, r Receipt) error { sent <- r; return nil })
	deliver(t, a, http.StatusOK)
	deliver(t, a, http.StatusOK)
	if payments, jobs := count(t, pool); payments != 1 || jobs != 1 {
		t.Errorf("there are %d payments and %d jobs, want one of each", payments, jobs)
	}
	if err := a.jobs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.jobs.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if diff := cmp.Diff(Receipt{"pay_1"}, testkit.Next(t, sent)); diff != "" {
		t.Error("the receipt (-want +got):\n" + diff)
	}
}

// A chargeback was won.
func TestReceivedAgain(t *testing.T) {
	t.Parallel()
	a, pool := open(t, func(context.Context, Receipt) error { return errors.New("there is no job") })
	deliver(t, a, http.StatusOK)
	deliverBody(t, a, strings.Replace(body, "evt_1&1", "evt_1&2", 1), http.StatusOK)
	if payments, jobs := count(t, pool); payments != 1 || jobs != 1 {
		t.Errorf("there are %d payments and %d jobs, want one of each", payments, jobs)
	}
}

// The insert of the payment fails at COMMIT, after the job was enqueued.
func TestFailureEnqueuesNoJob(t *testing.T) {
	t.Parallel()
	a, pool := open(t, func(context.Context, Receipt) error { return errors.New("there is no job") }, "payments_charge_fkey")
	const deferred = `
create table customers (charge text primary key);
alter table payments add foreign key (charge) references customers deferrable initially deferred`
	if _, err := pool.Exec(t.Context(), deferred); err != nil {
		t.Fatal(err)
	}
	a.inbox.MaxAttempts = 1
	deliver(t, a, http.StatusOK)
	if payments, jobs := count(t, pool); payments != 0 || jobs != 0 {
		t.Errorf("there are %d payments and %d jobs, want none", payments, jobs)
	}
	if _, err := pool.Exec(t.Context(), `insert into customers values ('pay_1')`); err != nil {
		t.Fatal(err)
	}
	deliver(t, a, http.StatusOK) // once more: it is not parked any longer
	if payments, jobs := count(t, pool); payments != 1 || jobs != 1 {
		t.Errorf("there are %d payments and %d jobs, want one of each", payments, jobs)
	}
}
