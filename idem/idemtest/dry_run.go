package idemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/tracelog"

	"github.com/paghooks/paghooks/idem"
)

// DryRun tests that an application's handlers do nothing in a dry run that its
// rollback leaves behind.
//
// A dry run calls the handlers for real: asaas.Recover with Client.Try and
// [idem.Inbox.DryReplay] run them in a transaction that is rolled back, and an effect that
// a handler has outside of it is real, an HTTP request for example. A handler
// asks [idem.IsDryRun] before it does such a thing. DryRun finds those that do
// not ask.
//
// source and deliveries are those of [ExactlyOnce]. DryRun makes the application
// once, runs each delivery dry, and fails the test if a handler
//
//   - executes a statement through the pool, or through a connection that is
//     opened with the pool's configuration: the failure has the SQL;
//   - sends a request through [http.DefaultTransport], which [http.Get] and every
//     [http.Client] without a Transport do: the failure has the method and the
//     host. The request is not sent, it ends with an error;
//   - leaves a row of the schema changed, in any way;
//   - fails, or does not exist.
//
// It cannot find a Transport of the application's own, other protocols such as
// SMTP, another database, a broker, files, memory, or anything that the handler
// starts and that happens after it has returned. Give the application fakes of
// those, and look at them after DryRun.
//
// While it runs it replaces http.DefaultTransport: a test that calls it, and its
// parents, cannot be parallel.
func DryRun(t testing.TB, source func(pool *pgxpool.Pool) idem.Source, deliveries []*http.Request) {
	t.Helper()
	t.Setenv("IDEMTEST_DRY_RUN", "1") // panics in a parallel test
	d := &dryRun{TB: t}
	pool, transaction := d.open(URL(t))
	defer pool.Close()
	defer transaction.Close()
	if err := idem.Migrate(t.Context(), transaction); err != nil {
		t.Fatal(err)
	}
	app := source(pool)
	inbox := idem.NewInbox(transaction, app)
	inbox.Logger = nil
	defer d.replaceTransport()()
	for n, r := range deliveries {
		d.try(inbox, app, n+1, r, transaction)
	}
}

// dryRun records the effects of handlers outside of their transaction.
type dryRun struct {
	testing.TB

	mu   sync.Mutex
	seen []string
}

// open opens the application's pool, which records its use, and the one of the
// handlers' transactions.
func (d *dryRun) open(url string) (recorded, transaction *pgxpool.Pool) {
	d.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		d.Fatal(err)
	}
	if transaction, err = pgxpool.NewWithConfig(d.Context(), config.Copy()); err != nil {
		d.Fatalf("idemtest: no pool for the test: %v", err)
	}
	config.ConnConfig.Tracer = &tracelog.TraceLog{Logger: tracelog.LoggerFunc(d.statement), LogLevel: tracelog.LogLevelInfo}
	if recorded, err = pgxpool.NewWithConfig(d.Context(), config); err != nil {
		d.Fatalf("idemtest: no pool for the test: %v", err)
	}
	return recorded, transaction
}

// try runs a delivery dry.
func (d *dryRun) try(inbox *idem.Inbox, app idem.Source, n int, r *http.Request, transaction *pgxpool.Pool) {
	d.Helper()
	e, err := app.Open(r)
	if err != nil {
		d.Fatalf("idemtest: delivery %d is not one that the application takes: %v", n, err)
	}
	before := d.contents(transaction)
	d.take() // the effects of source and Open
	outcome, err := inbox.DryRun(d.Context(), e)
	seen := d.take()
	for _, what := range seen {
		d.Errorf("idemtest: in a dry run of %s (delivery %d), the handler %s: that is not in its transaction and happens, use tx, or ask idem.IsDryRun before it", e.Type, n, what)
	}
	for table, rows := range d.contents(transaction) {
		if before[table] != rows && len(seen) == 0 {
			d.Errorf("idemtest: a dry run of %s (delivery %d) left the table %s changed: ask idem.IsDryRun before what is not in tx", e.Type, n, table)
		}
	}
	switch {
	case len(seen) > 0: // the request that was not sent has probably failed it
	case outcome == idem.Unhandled, outcome == idem.Ignored:
		d.Errorf("idemtest: delivery %d, %s, has no handler: nothing is tried", n, e.Type)
	case err != nil:
		d.Errorf("idemtest: delivery %d fails in a dry run: %v", n, err)
	}
}

// contents returns a digest of the rows of each table in the schema.
func (d *dryRun) contents(pool *pgxpool.Pool) map[string]string {
	d.Helper()
	rows, err := pool.Query(d.Context(), `select quote_ident(relname) from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')`)
	if err != nil {
		d.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.Fatal(err)
	}
	digests := make(map[string]string)
	for _, table := range tables {
		var digest string
		if err := pool.QueryRow(d.Context(), `select count(*) || md5(coalesce(string_agg(t::text, '' order by t::text), '')) from `+table+` t`).Scan(&digest); err != nil {
			d.Fatal(err)
		}
		digests[table] = digest
	}
	return digests
}

func (d *dryRun) record(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.seen, what) {
		d.seen = append(d.seen, what)
	}
}

// take returns the effects that were recorded since it was last called.
func (d *dryRun) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.seen = nil }()
	return d.seen
}

// statement records the statements of connections, for a [tracelog.Logger].
func (d *dryRun) statement(_ context.Context, _ tracelog.LogLevel, what string, data map[string]any) {
	sql, ok := data["sql"].(string)
	if table, copies := data["tableName"].(pgx.Identifier); copies {
		sql, ok = "copy "+table.Sanitize(), true
	}
	if ok && what != "Prepare" {
		d.record(fmt.Sprintf("executes %q on a connection of its own", strings.Join(strings.Fields(sql), " ")))
	}
}

// errNoRequest is the error of a request that a dry run must not send.
var errNoRequest = errors.New("idemtest: no request is sent in a dry run: ask idem.IsDryRun before it")

// refuser is a transport that sends nothing.
type refuser struct{ *dryRun }

// RoundTrip implements [http.RoundTripper].
func (t refuser) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	t.record(fmt.Sprintf("sends a %s to %s", r.Method, r.URL.Host))
	return nil, errNoRequest
}

// replaceTransport replaces the transport that all code shares, and returns a function that
// puts it back.
func (d *dryRun) replaceTransport() func() {
	shared := http.DefaultTransport
	http.DefaultTransport = refuser{d}
	return func() { http.DefaultTransport = shared }
}
