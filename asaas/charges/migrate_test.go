package charges_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestMigrateMakesTheTablesOnceInAnyNumberOfProcesses(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if err := charges.Migrate(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := query(t, pool, `select count(*) from asaas_charges_migrations`); got != "1" {
		t.Errorf("the day since when the table may be complete is recorded %s times", got)
	}
}

// They have the numbers of today's files, and other columns.
func TestMigrateRefusesTablesOfAVersionThatWasNotReleased(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	const old = `create table asaas_charges_migrations (version integer primary key, applied_at timestamptz not null default now());
		insert into asaas_charges_migrations (version) values (1), (2)`
	if _, err := pool.Exec(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := charges.Migrate(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "before v0.1.0") {
		t.Errorf("Migrate = %v, want an error that says what to do with the tables", err)
	}
}

func TestEachFileMayBeRunAgain(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if err := handle(t, pool, newEvents(book), "", asaastest.Event(asaas.EventPaymentReceived)); err != nil {
		t.Fatal(err)
	}
	before := query(t, pool, `select (select count(*) from asaas_charges) || ' ' || (select string_agg(s::text, ' ' order by scope) from asaas_charges_since s)`)
	files, err := charges.Migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		sql, err := charges.Migrations.ReadFile("migrations/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), string(sql)); err != nil {
			t.Errorf("%s: %v", file.Name(), err)
		}
	}
	if after := query(t, pool, `select (select count(*) from asaas_charges) || ' ' || (select string_agg(s::text, ' ' order by scope) from asaas_charges_since s)`); after != before {
		t.Errorf("there is %s after running the files again, and was %s", after, before)
	}
	if got, want := query(t, pool, `select count(*) from asaas_charges_migrations`), len(files); got != string(rune('0'+want)) {
		t.Errorf("%s files are recorded, of %d", got, want)
	}
}

// A second set of tables, in a schema that came before the first in the search_path, would not know what is booked.
func TestMigrateRefusesASecondSetAlongTheSearchPath(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		const earlier = `create schema newer; select set_config('search_path', 'newer, ' || current_setting('search_path'), true)`
		if _, err := tx.Exec(t.Context(), earlier); err != nil {
			t.Fatal(err)
		}
		if err := charges.Migrate(t.Context(), tx); err == nil || !strings.Contains(err.Error(), "MigrateSchema") {
			t.Errorf("Migrate returned %v, want an error that names MigrateSchema", err)
		}
		if err := charges.MigrateSchema(t.Context(), tx, "newer"); err != nil {
			t.Error(err)
		}
		return tx.Rollback(t.Context())
	})
	if err != nil && !strings.Contains(err.Error(), "closed") {
		t.Fatal(err)
	}
	if err := charges.MigrateSchema(t.Context(), pool, ""); err == nil {
		t.Error("MigrateSchema took a schema without a name")
	}
}

func TestAShopThatRunsAlreadyIsNotTakenForANewOneInASchemaOfItsOwn(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if state, _ := deliver(t, pool, newEvents(book), asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)).Created()); state != "done" {
		t.Fatalf("the event is %s, want done", state)
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		var schema, since string
		if err := tx.QueryRow(t.Context(), `select current_schema() || '_charges'`).Scan(&schema); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `create schema `+schema); err != nil {
			return err
		}
		if err := charges.MigrateSchema(t.Context(), tx, schema); err != nil {
			return err
		}
		err := tx.QueryRow(t.Context(), `select (complete - (now() at time zone interval '-3 hours')::date)::text from `+schema+`.asaas_charges_migrations`).Scan(&since)
		if err != nil || since != "1" {
			t.Errorf("the table is complete in %s days, %v; want 1: the handlers of before have booked charges of today", since, err)
		}
		_, err = tx.Exec(t.Context(), `drop schema `+schema+` cascade`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAChargeWithoutADayIsCopiedWhereNoProgramHasBookedAny(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	c.Payment.DateCreated = ""
	if err := handle(t, pool, newEvents(book), "", c.Created()); err != nil {
		t.Error(err)
	}
}

func TestErasingRemovesTheCustomerForGood(t *testing.T) {
	t.Parallel()
	pool, events := newTables(t), newEvents(book)
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	other := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	other.Payment.Customer = "cus_other"
	for _, body := range [][]byte{charge.Created(), other.Created()} {
		if err := handle(t, pool, events, "", body); err != nil {
			t.Fatal(err)
		}
	}
	n, err := charges.Erase(t.Context(), pool, charge.Payment.Customer)
	if err != nil || n != 1 {
		t.Fatalf("Erase = %d, %v, want 1 charge", n, err)
	}
	var seen charges.Change
	events = newEvents(func(_ context.Context, _ pgx.Tx, c charges.Change) error { seen = c; return nil })
	if err := handle(t, pool, events, "", charge.Received()); err != nil {
		t.Fatal(err)
	}
	if seen.After.Customer != "" || seen.Paid() != asaas.Cents(10000) {
		t.Errorf("the change after it has the customer %q and R$ %s", seen.After.Customer, seen.Paid())
	}
	if got, want := query(t, pool, `select string_agg(customer, ',' order by customer) from asaas_charges`), ",cus_other"; got != want {
		t.Errorf("the customers are %q, want %q", got, want)
	}
	if _, err := charges.Erase(t.Context(), pool, ""); err == nil {
		t.Error("no customer was erased without an error")
	}
}

func TestAnEarlierDaySinceWhenTheTableIsCompleteStays(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := charges.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ since, want time.Time }{
		{time.Now().AddDate(1, 0, 0), time.Now()}, // that of Migrate
		{time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC), time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)},
		{time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)},
	} {
		if err := charges.Filled(t.Context(), pool, "", c.since); err != nil {
			t.Fatal(err)
		}
		want := c.want.In(asaas.Brasilia()).Format(time.DateOnly)
		if got := query(t, pool, `select since from asaas_charges_since where scope = ''`); got != want {
			t.Errorf("filled since %s, the table is complete since %s, want %s", c.since, got, want)
		}
	}
}
