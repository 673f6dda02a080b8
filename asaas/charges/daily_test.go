package charges_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/health/check"
)

func TestManyProcessesReconcileAnAccountOnceADay(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	_, created, received := pix(3)
	for n := range created {
		fake.Emit(created[n], received[n])
	}
	d := func() *charges.Daily {
		return &charges.Daily{Client: client, DB: pool, Apply: book, Logger: slog.New(slog.DiscardHandler)}
	}
	age := func(days int) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set began = began - make_interval(days => $1), unsettled = unsettled - make_interval(days => $1)`, days); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		t.Helper()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := d().Look(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	look()
	state := func() string {
		return query(t, pool, `select (began > now() - interval '1 minute') || ' ' || (unsettled > now() - interval '1 minute') from asaas_charges_runs`)
	}
	if got := state(); got != "true true" {
		t.Errorf("after the first look, began and unsettled are now: %s, want true true", got)
	}
	age(2)
	look()
	if got := state(); got != "true false" {
		t.Errorf("two days later, began and unsettled are now: %s, want true false: cards whose money is to come are read weekly", got)
	}
	age(6)
	look()
	if got := state(); got != "true true" {
		t.Errorf("a week later, began and unsettled are now: %s, want true true", got)
	}
	before := query(t, pool, `select began from asaas_charges_runs`)
	look()
	if after := query(t, pool, `select began from asaas_charges_runs`); after != before {
		t.Errorf("a run began at %s, and another one at %s of the same day", before, after)
	}
}

func TestARunOfTheDayThatStoppedGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	know(t, pool, c.Created())
	c.Now = time.Now()
	fake.Emit(c.Received())
	fake.InjectAPI(func(w http.ResponseWriter, r *http.Request, api http.Handler) { api.ServeHTTP(w, r) }, asaastest.APIStatus(http.StatusTooManyRequests))
	d := &charges.Daily{Client: client, DB: pool, Apply: book, Logger: slog.New(slog.DiscardHandler)}
	look := func() {
		t.Helper()
		if _, err := d.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if got := query(t, pool, `select (cursor is not null) || ' ' || (taken > now()) from asaas_charges_runs`); got != "true true" {
		t.Fatalf("a run that Asaas has stopped left a cursor and a pause: %s, want true true", got)
	}
	look() // in the pause
	if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set taken = now()`); err != nil {
		t.Fatal(err)
	}
	look()
	if got := query(t, pool, `select (cursor is null) || ' ' || (began is not null) from asaas_charges_runs`); got != "true true" {
		t.Errorf("the run that went on has come to its end: %s, want true true", got)
	}
	if _, paid := sum(t, pool); paid != "100.00" {
		t.Errorf("the ledger has %s, want 100.00", paid)
	}
}

func TestDailyNeedsItsSettingsAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	if err := (&charges.Daily{}).Run(t.Context()); err == nil {
		t.Error("it runs without a client")
	}
	_, client := newAccount(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the program ends"))
	d := &charges.Daily{Client: client, DB: newTables(t), Apply: func(context.Context, pgx.Tx, charges.Change) error { return nil }}
	if err := d.Run(ctx); err != nil {
		t.Errorf("it ended with %v, want nil", err)
	}
}

// What could not be booked stays in the gap: else a receipt whose event never came, and whose order was not stored in time, were
// forgotten after one line of log.
func TestAChargeThatFailedIsReadAgainTheNextDay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		paused bool
	}{{"in one run", false}, {"before a pause", true}} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			fake, client := newAccount(t)
			charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
			charge.Now = time.Now().AddDate(0, 0, -9)
			fake.Emit(charge.Created(), charge.Confirmed())
			if c.paused {
				pass := func(w http.ResponseWriter, r *http.Request, api http.Handler) { api.ServeHTTP(w, r) }
				fake.InjectAPI(pass, asaastest.APIStatus(http.StatusTooManyRequests))
			}
			stored := false
			d := &charges.Daily{Client: client, DB: pool, Logger: slog.New(slog.DiscardHandler)}
			d.Apply = func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
				if !stored {
					return errors.New("its order is not stored")
				}
				return book(ctx, tx, c)
			}
			look := func() {
				t.Helper()
				if _, err := d.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set taken = now() - interval '1 minute', began = began - interval '2 days'`); err != nil {
					t.Fatal(err)
				}
			}
			wantCheck(t, d, true, "no run has begun yet")
			look()
			look()
			wantCheck(t, d, false, "1 charges could not be copied or applied, the first is "+charge.Payment.ID+": ")
			stored = true
			look()
			wantCheck(t, d, true, "the last run came to its end at ")
			if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set ended = ended - interval '49 hours'`); err != nil {
				t.Fatal(err)
			}
			wantCheck(t, d, false, "the last run came to its end at ")
			if _, paid := sum(t, pool); paid != "100.00" {
				t.Errorf("the ledger has %s, want 100.00", paid)
			}
		})
	}
}

// The run that goes on does not read it any more: its list was read before the pause.
func TestAChargeThatFailedBeforeAPauseIsReadAgainThoughTheRestOfTheRunDoesNotReadIt(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	charge.Payment.DateCreated = asaas.Date(time.Now().AddDate(0, 0, -9).Format(time.DateOnly))
	fake.Emit(charge.Created())
	stored := false
	d := &charges.Daily{Client: client, DB: pool, Logger: slog.New(slog.DiscardHandler)}
	d.Apply = func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		if !stored {
			return errors.New("its order is not stored")
		}
		return book(ctx, tx, c)
	}
	look := func() {
		t.Helper()
		if _, err := d.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set taken = now() - interval '1 minute'`); err != nil {
			t.Fatal(err)
		}
	}
	for scan := "0"; scan == "0"; scan = query(t, pool, `select coalesce((select cursor ->> 'scan' from asaas_charges_runs), '0')`) {
		passed := false
		fake.InjectAPI(func(w http.ResponseWriter, r *http.Request, api http.Handler) { passed = true; api.ServeHTTP(w, r) }, asaastest.APIStatus(http.StatusTooManyRequests))
		look()
		if !passed {
			t.Fatal("the run was never broken off behind its first list")
		}
	}
	look()
	if got := query(t, pool, `select (cursor is null) || ' ' || (began is null) from asaas_charges_runs`); got != "true true" {
		t.Fatalf("the run has come to its end, and the next one begins where this one did: %s, want true true", got)
	}
	wantCheck(t, d, false, "1 charges could not be copied or applied, the first is "+charge.Payment.ID+": ")
	stored = true
	look()
	if n := query(t, pool, `select count(*) from asaas_charges`); n != "1" {
		t.Errorf("%s charges are copied, want 1", n)
	}
}

// Asaas's lists may show a charge late.
func TestEachRunReadsTheDayBeforeTheLastOneOnceMore(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	d := &charges.Daily{Client: client, DB: pool, Apply: book, Logger: slog.New(slog.DiscardHandler)}
	look := func() {
		t.Helper()
		if _, err := d.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	charge.Now = time.Now().AddDate(0, 0, -4)
	fake.Emit(charge.Created(), charge.Received())
	if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set began = began - interval '2 days'`); err != nil {
		t.Fatal(err)
	}
	look()
	if _, paid := sum(t, pool); paid != "100.00" {
		t.Errorf("the ledger has %s, want 100.00", paid)
	}
}

func TestDailyThatNobodyRunsTurnsHealthRed(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	d := &charges.Daily{DB: pool}
	wantCheck(t, d, true, "no run has begun yet, and the tables are of ")
	if _, err := pool.Exec(t.Context(), `update asaas_charges_migrations set applied_at = applied_at - interval '49 hours'`); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, d, false, "no run has begun yet, and the tables are of ")
}

func TestDailyGoesOnAfterAStateThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, state string }{
		{"a cursor of nothing", `cursor = '{}'`},
		{"a cursor of another type", `cursor = '[1]'`},
		{"a cursor of a later version", `cursor = '{"since": "2026-08-01T00:00:00Z", "until": "2026-08-08T00:00:00Z", "scan": 9}'`},
		{"the clock was a year ahead when a run began", `began = now() + interval '1 year', unsettled = now() + interval '1 year'`},
		{"the clock was a year ahead when a turn began", `taken = now() + interval '1 year', began = now() - interval '2 days'`},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			fake, client := newAccount(t)
			charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
			charge.Now = time.Now().AddDate(0, 0, -1)
			fake.Emit(charge.Created(), charge.Received())
			if _, err := pool.Exec(t.Context(), `insert into asaas_charges_runs (scope, taken) values ('', now()); update asaas_charges_runs set `+c.state); err != nil {
				t.Fatal(err)
			}
			d := &charges.Daily{Client: client, DB: pool, Apply: book, Logger: slog.New(slog.DiscardHandler)}
			_, first := d.Look(t.Context()) // may say what is wrong
			if _, err := d.Look(t.Context()); err != nil {
				t.Errorf("the second look: %v; the first: %v", err, first)
			}
			if _, paid := sum(t, pool); paid != "100.00" {
				t.Errorf("the ledger has %s, want 100.00", paid)
			}
			if got := query(t, pool, `select began between now() - interval '1 hour' and now() and cursor is null from asaas_charges_runs`); got != "true" {
				t.Error("no run has come to its end")
			}
		})
	}
}

// wantCheck checks what the health of a process that does not run the reconciliation says.
func wantCheck(t *testing.T, d *charges.Daily, healthy bool, says string) {
	t.Helper()
	other := &charges.Daily{Client: d.Client, DB: d.DB, Apply: d.Apply}
	got := other.Examine(t.Context(), check.Limits{Timeout: time.Minute})[0]
	if got.Healthy != healthy || !strings.HasPrefix(got.Says, says) || got.Name != "reconcile" {
		t.Errorf("health says %q of %s, healthy %v, want %q, %v", got.Says, got.Name, got.Healthy, says, healthy)
	}
}
