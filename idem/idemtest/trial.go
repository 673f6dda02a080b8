package idemtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// matrix is every trial that an application is put through: faults, or orders.
type matrix struct {
	testing.TB
	source    func(*pgxpool.Pool) idem.Source
	check     func(context.Context, *pgxpool.Pool) error
	byWorkers bool // an inbox receives, and its workers process

	url      string
	direct   *pgxpool.Pool // no fault happens to it
	empty    string        // SQL that empties the schema
	stages   []stage       // of each trial of a fault
	failures int
}

func (m *matrix) connect() {
	m.Helper()
	m.url = URL(m)
	m.direct = m.open(func(*pgxpool.Config) {})
	var schema string
	if err := m.direct.QueryRow(m.Context(), `select current_schema()`).Scan(&schema); err != nil {
		m.Fatal(err)
	}
	m.empty = "select pg_terminate_backend(pid) from pg_stat_activity " + // those that an application left
		"where application_name = '" + schema + "' and pid <> pg_backend_pid();" +
		"drop schema " + schema + " cascade; create schema " + schema
}

func (m *matrix) open(set func(*pgxpool.Config)) *pgxpool.Pool {
	m.Helper()
	config, err := pgxpool.ParseConfig(m.url)
	if err != nil {
		m.Fatal(err)
	}
	set(config)
	pool, err := pgxpool.NewWithConfig(m.Context(), config)
	if err != nil {
		m.Fatalf("idemtest: no pool for the test: %v", err)
	}
	return pool
}

// mostFailures is the number of failures that one cause may have until more of them say
// nothing new.
const mostFailures = 3

// wrong reports the wrong effects of a trial.
func (m *matrix) wrong(format string, args ...any) {
	m.Helper()
	m.Errorf("idemtest: "+format, args...)
	if m.failures++; m.failures == mostFailures {
		m.Fatalf("idemtest: %d trials had wrong effects: the rest is not tried", m.failures)
	}
}

// trial is one run of the application, on an empty schema.
type trial struct {
	*matrix
	proxy  *pgproxy.Proxy
	pool   *pgxpool.Pool // the application's, through the proxy
	app    idem.Source
	events *idem.Inbox // reads them, on the direct pool
}

func (m *matrix) start() *trial {
	m.Helper()
	if _, err := m.direct.Exec(m.Context(), m.empty); err != nil {
		m.Fatalf("idemtest: the schema cannot be emptied: %v", err)
	}
	if err := idem.Migrate(m.Context(), m.direct); err != nil {
		m.Fatal(err)
	}
	run := &trial{matrix: m, proxy: new(pgproxy.Proxy)}
	run.pool = m.open(run.proxy.Through)
	run.app = m.source(run.pool)
	run.events = idem.NewInbox(m.direct, run.app)
	return run
}

// end finds the connections that the application left open.
func (run *trial) end() {
	run.Helper()
	if n := closePool(run.pool, 5*time.Second); n > 0 {
		run.Errorf("idemtest: %d connections of the pool are still in use after the deliveries: have the handler release them, and close rows and transactions", n)
	}
}

// delivery is a request that can be sent again and again.
type delivery struct {
	request *http.Request
	body    []byte
	name    string // its event's type
}

func (m *matrix) read(r *http.Request) *delivery {
	m.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.Fatalf("idemtest: a delivery's body cannot be read: %v", err)
	}
	return &delivery{r, body, "a delivery"}
}

// deliver sends a request once. It is done when that is answered with 200.
func (run *trial) deliver(d *delivery) (done bool, err error) {
	var seen idem.Observation
	observe := func(_ context.Context, o idem.Observation) { seen = o }
	r, w := d.request.Clone(run.Context()), httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(d.body))
	i := run.inbox(observe)
	i.WorkFirst = !run.byWorkers
	i.ServeHTTP(w, r)
	if seen.Event.Type != "" {
		d.name = seen.Event.Type
	}
	done = w.Code == http.StatusOK
	if !done || seen.Err != nil {
		err = fmt.Errorf("answered %d, %s: %v", w.Code, seen.Outcome, seen.Err)
	}
	return done, err
}

// noLimit has no event parked because it was tried often.
const noLimit = 1 << 20

// inbox is an inbox that sends the same messages in every run: one worker, which
// is not woken.
func (run *trial) inbox(observe func(context.Context, idem.Observation)) *idem.Inbox {
	i := idem.NewInbox(run.pool, run.app)
	i.Logger, i.Observe, i.MaxAttempts = nil, observe, noLimit
	i.Workers, i.PollOnly = 1, true
	return i
}

// timePasses ends all waiting. No workers are left: a claim that they have left behind is
// that of a process that died.
const timePasses = `
delete from idem_workers;
update idem_payloads set due_at = now() where due_at > now()`

// work has a worker process what is due, after all waiting has ended.
func (run *trial) work(ctx context.Context, observe func(context.Context, idem.Observation)) error {
	run.Helper()
	if _, err := run.direct.Exec(run.Context(), timePasses); err != nil {
		run.Fatal(err)
	}
	return run.inbox(observe).Drain(ctx)
}

// stored returns an error that names an event in a state, or nil.
func (run *trial) stored(state idem.State) error {
	run.Helper()
	for e, err := range run.events.List(run.Context(), idem.Filter{States: []idem.State{state}}) {
		if err != nil {
			run.Fatal(err)
		}
		return fmt.Errorf("%s %s is %s, its last error is %q", e.Type, e.ID, state, e.LastError)
	}
	return nil
}
