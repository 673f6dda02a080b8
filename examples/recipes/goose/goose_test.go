// Package goose tests that goose itself applies the migrations of package idem.
package goose_test

import (
	"context"
	"database/sql"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/testkit"
)

// own are the migrations of an application.
var own = fstest.MapFS{
	"migrations/00001_orders.sql":   {Data: []byte("-- +goose Up\ncreate table orders (id text primary key);\n")},
	"migrations/00002_invoices.sql": {Data: []byte("-- +goose Up\ncreate table invoices (id text primary key);\n")},
	"migrations/00003_receipts.sql": {Data: []byte("-- +goose Up\ncreate table receipts (id text primary key);\n")},
	"migrations/00004_refunds.sql":  {Data: []byte("-- +goose Up\ncreate table refunds (id text primary key);\n")},
}

var settings sync.Mutex // goose's are of the process

// up is goose -table TABLE up.
func up(t *testing.T, url, table string, files fs.FS) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	settings.Lock()
	defer settings.Unlock()
	goose.SetLogger(goose.NopLogger())
	goose.SetTableName(table)
	goose.SetBaseFS(files)
	if err := goose.SetDialect("postgres"); err != nil {
		t.Fatal(err)
	}
	if err := goose.UpContext(t.Context(), db, "migrations"); err != nil {
		t.Fatalf("goose -table %s up: %v", table, err)
	}
}

// accept has an event stored.
func accept(t *testing.T, pool *pgxpool.Pool) (idem.Outcome, error) {
	t.Helper()
	inbox := idem.NewInbox(pool, testkit.NewSource("notes"))
	inbox.Logger = testkit.NoWarnings(t, "the tables are missing", "idem_events")
	return inbox.Accept(t.Context(), idem.Event{Source: "notes", ID: "e1", Type: "paid", Payload: []byte("{}")})
}

func open(t *testing.T) (url string, pool *pgxpool.Pool) {
	t.Helper()
	url = idemtest.URL(t)
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return url, pool
}

func TestGooseMakesTheTablesWithATableOfVersionsForThemAlone(t *testing.T) {
	t.Parallel()
	url, pool := open(t)
	for range 2 {
		up(t, url, goose.DefaultTablename, own)
		up(t, url, "idem_goose_version", idem.Migrations)
	}
	if o, err := accept(t, pool); o != idem.Pending || err != nil {
		t.Errorf("an event: %s, %v, want pending", o, err)
	}
	// And Migrate may follow.
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Error(err)
	}
	if o, err := accept(t, pool); o != idem.Duplicate || err != nil {
		t.Errorf("the event again: %s, %v, want a duplicate", o, err)
	}
}

// In one table of versions goose takes the application's first ones for these, and says
// nothing. What says so is the first event, and what asks for migrations.
func TestTablesThatGooseDidNotMakeAreReported(t *testing.T) {
	t.Parallel()
	url, pool := open(t)
	up(t, url, goose.DefaultTablename, own)
	up(t, url, goose.DefaultTablename, idem.Migrations)
	all, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if missing, err := doctor.MissingMigrations(t.Context(), pool); len(missing) != len(all) || err != nil {
		t.Errorf("MissingMigrations = %q, %v, want all", missing, err)
	}
	const says = "the tables are missing: call idem.Migrate at start"
	if o, err := accept(t, pool); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "idem_goose_version") {
		t.Errorf("an event: %s, %v, want an error that says what to do", o, err)
	}
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Error(err)
	}
	if o, err := accept(t, pool); o != idem.Pending || err != nil {
		t.Errorf("an event after Migrate: %s, %v, want pending", o, err)
	}
}

func TestGooseMakesTheChargeTable(t *testing.T) {
	t.Parallel()
	url, pool := open(t)
	for range 2 {
		up(t, url, "idem_goose_version", idem.Migrations)
		up(t, url, "asaas_charges_goose_version", charges.Migrations)
	}
	if err := charges.Migrate(t.Context(), pool); err != nil { // finds it done
		t.Error(err)
	}
	if err := charges.Filled(t.Context(), pool, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Handler(nil))
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	o, err := inbox.Accept(t.Context(), asaas.Identify(asaastest.Event(asaas.EventPaymentReceived)))
	if o != idem.Done || err != nil {
		t.Errorf("an event: %s, %v, want done", o, err)
	}
}
