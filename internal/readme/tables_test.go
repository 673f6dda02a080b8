package readme

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/testkit"
)

// section returns the blocks in a language of the section of a document with a heading.
func section(t *testing.T, document, heading, language string) (found []string) {
	t.Helper()
	text := read(t, document)
	_, text, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", document, heading)
	}
	if end := strings.Index(text, "\n## "); end >= 0 {
		text = text[:end]
	}
	for _, b := range blocks(t, document, language) {
		if strings.Contains(text, b.text) {
			found = append(found, b.text)
		}
	}
	return found
}

// A host has published the schema public, and the tables are there.
func TestTablesMoveToASchemaOfTheirOwnAndTheHostsRolesAreShutOut(t *testing.T) {
	t.Parallel()
	server := idemtest.Pool(t)
	var shop string
	if err := server.QueryRow(t.Context(), `select current_schema() || '_shop'`).Scan(&shop); err != nil {
		t.Fatal(err)
	}
	anon := shop + "_anon"
	run := func(pool *pgxpool.Pool, statements string) {
		t.Helper()
		if _, err := pool.Exec(context.Background(), statements); err != nil {
			t.Fatalf("%s: %v", statements, err)
		}
	}
	run(server, `create role `+shop+` login`)
	run(server, `create role `+anon)
	run(server, `create database `+shop+` owner `+shop)
	t.Cleanup(func() {
		run(server, `drop database `+shop)
		run(server, `drop role `+shop)
		run(server, `drop role `+anon)
	})
	connect := func() *pgxpool.Pool {
		config := server.Config().Copy()
		config.ConnConfig.Database = shop
		config.ConnConfig.RuntimeParams = map[string]string{"role": shop}
		config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { // what logging in as the role does
			_, err := c.Exec(ctx, `select set_config('search_path', coalesce((select split_part(setting, '=', 2) from pg_db_role_setting s
				cross join unnest(setconfig) setting where setrole = current_user::regrole and setting like 'search_path=%'), 'public'), false)`)
			return err
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	migrate := func(pool *pgxpool.Pool) {
		t.Helper()
		if err := idem.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		if err := charges.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	warned := func(pool *pgxpool.Pool) bool {
		found, err := doctor.Check(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Check == "access" {
				return true
			}
		}
		return false
	}
	before := connect()
	run(before, `create schema if not exists public; grant usage on schema public to `+anon+`; alter default privileges in schema public grant all on tables to `+anon)
	migrate(before)
	source := testkit.NewSource("asaas")
	idem.Handle(&source.Routes, "paid", func(context.Context, pgx.Tx, *struct{}) error { return nil })
	accept := func(pool *pgxpool.Pool, want idem.Outcome) {
		t.Helper()
		p := idem.NewInbox(pool, source)
		p.WorkFirst = true
		p.Logger = nil
		if outcome, err := p.Accept(t.Context(), idem.Event{ID: "e1", Type: "paid", Payload: []byte(`{}`)}); outcome != want {
			t.Errorf("the event is %s, %v, want %s", outcome, err, want)
		}
	}
	accept(before, idem.Done)
	if !warned(before) {
		t.Error("doctor does not warn of the role of the host")
	}
	statements := section(t, "docs/postgres.md", "## A schema of its own", "sql")
	if len(statements) != 2 {
		t.Fatalf("%d blocks, want 2", len(statements))
	}
	run(before, strings.ReplaceAll(statements[0], "shop", shop))
	run(before, statements[1])

	after := connect()
	migrate(after)
	accept(after, idem.Duplicate)
	if warned(after) {
		t.Error("doctor warns of tables in a schema of their own")
	}
	var left int
	if err := after.QueryRow(t.Context(), `select count(*) from pg_class where relnamespace = 'public'::regnamespace and relname ~ '^(idem|asaas)'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tables are left in public, %v", left, err)
	}
	var may bool
	if err := after.QueryRow(t.Context(), `select has_schema_privilege($1, 'webhooks', 'usage')`, anon).Scan(&may); err != nil || may {
		t.Errorf("the role of the host may use the schema: %t, %v", may, err)
	}
}

// Staging starts on a copy of production.
func TestTheQueueOfACopyIsEmptyAfterTheStatementsOfTheDocument(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var handled []string
	source := testkit.NewSource("asaas")
	idem.Handle(&source.Routes, "paid", func(ctx context.Context, _ pgx.Tx, _ *struct{}) error {
		e, _ := idem.EventFrom(ctx)
		handled = append(handled, e.ID)
		if e.ID == "parked" {
			return idem.NoRetry(context.Canceled)
		}
		return nil
	})
	inbox := idem.NewInbox(pool, source)
	inbox.Logger, inbox.KeepPayloads, inbox.Workers = nil, true, 1
	accept := func(id, does string, want idem.Outcome) {
		t.Helper()
		if outcome, err := inbox.Accept(t.Context(), idem.Event{ID: id, Type: does, Key: id, Payload: []byte(`{}`)}); outcome != want {
			t.Fatalf("%s is %s, %v, want %s", id, outcome, err, want)
		}
	}
	accept("done", "paid", idem.Pending)
	accept("parked", "paid", idem.Pending)
	accept("unknown", "new", idem.Pending)
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	accept("waiting", "paid", idem.Pending)
	handled = nil

	for _, statements := range section(t, "docs/running.md", "## A copy of production", "sql") {
		if _, err := pool.Exec(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	sum, err := inbox.Replay(t.Context(), idem.Filter{})
	if diff := cmp.Diff(idem.Replayed{}, sum); diff != "" || err != nil {
		t.Errorf("a replay, %v (-want +got):\n%s", err, diff)
	}
	for _, id := range []string{"done", "parked", "unknown", "waiting"} {
		accept(id, "paid", idem.Duplicate)
	}
	if handled != nil {
		t.Errorf("handlers ran for %q", handled)
	}
	var bodies, rows int
	const left = `select (select count(*) from idem_archive), (select count(*) from idem_payloads)`
	if err := pool.QueryRow(t.Context(), left).Scan(&bodies, &rows); err != nil || bodies != 0 || rows != 300 {
		t.Errorf("%d bodies and %d rows are left, %v; want none, and the 300 without a source", bodies, rows, err)
	}
}

func TestTheStatementOfTheDocumentShowsHowLongEventsHaveBeenWaiting(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into idem_payloads (event, source, lane, due_at, received_at, body) values
		('asaas//e1', 'asaas', 'asaas//k1', now() - interval '1 hour', now(), ''), ('asaas//e2', 'asaas', 'asaas//k2', now() + interval '1 hour', now(), '')`); err != nil {
		t.Fatal(err)
	}
	var n int
	var isAnHour bool
	ask := strings.TrimSuffix(strings.TrimSpace(section(t, "docs/running.md", "## No CPU after the answer", "sql")[0]), ";")
	if err := pool.QueryRow(t.Context(), `select count, oldest between interval '1 hour' and interval '2 hours' from (`+ask+`) w`).Scan(&n, &isAnHour); err != nil || n != 1 || !isAnHour {
		t.Errorf("%d events, an hour: %t, %v", n, isAnHour, err)
	}
}
