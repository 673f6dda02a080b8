package readme

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
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
		p := idem.NewProcessor(pool, source)
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
	ask := strings.TrimSuffix(strings.TrimSpace(section(t, "docs/running.md", "## No processor after the answer", "sql")[0]), ";")
	if err := pool.QueryRow(t.Context(), `select count, oldest between interval '1 hour' and interval '2 hours' from (`+ask+`) w`).Scan(&n, &isAnHour); err != nil || n != 1 || !isAnHour {
		t.Errorf("%d events, an hour: %t, %v", n, isAnHour, err)
	}
}

func TestTheLoopOfTheRecipeGivesEachAccountATokenAndAScope(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher("the token of all")
	events.Accounts = func(*http.Request) (all []idem.Credentials, err error) {
		for _, scope := range []string{"acc-1", "acc-2", "acc-3"} {
			all = append(all, idem.Credentials{Scope: scope, Secrets: []string{"a-token-of-kqzmwxbvhtrplnsfgdjy-" + scope}})
		}
		return all, nil
	}
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = nil
	program := httptest.NewServer(inbox)
	t.Cleanup(program.Close)
	fake := asaastest.NewServer()
	t.Cleanup(fake.Close)
	id := fake.AddWebhook(asaastest.Webhook{URL: program.URL, Token: "the token of all", Events: []asaas.EventType{asaas.EventPaymentReceived}})
	wantScopes := func(want ...string) {
		t.Helper()
		fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
		fake.Advance(0)
		var scopes []string
		if err := pool.QueryRow(t.Context(), `select array_agg(scope order by received_at) from idem_event_log`).Scan(&scopes); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, scopes); diff != "" {
			t.Errorf("scopes of events (-want +got):\n%s", diff)
		}
	}
	wantScopes("")

	folder := t.TempDir()
	accounts := id + " " + fake.APIKey + " a-token-of-kqzmwxbvhtrplnsfgdjy-acc-1\n" + id + " $aact_hmlg_of_nobody a-token-of-kqzmwxbvhtrplnsfgdjy-acc-2\n"
	if err := os.WriteFile(filepath.Join(folder, "accounts.txt"), []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "build", "-o", filepath.Join(folder, "asaas-queue"), filepath.Join(root, "asaas/cmd/asaas-queue"))
	loop := section(t, "docs/recipes.md", "## From one URL and one token to scopes", "sh")[0]
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(loop, "rotate ", "rotate -sandbox "))
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "ASAAS_BASE_URL="+fake.URL+"/v3")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "see to "+id) != 1 {
		t.Fatalf("%v:\n%s", err, out)
	}
	wantScopes("", "acc-1")
}
