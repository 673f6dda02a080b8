package idemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// ExactlyOnce tests that an application's handlers have their effects exactly
// once, wherever the connection to Postgres breaks.
//
// It delivers the requests to an [idem.Processor] without a fault, and counts the
// messages that this sends to Postgres. Then it starts anew for each place where
// a cut makes a difference, and cuts the connection there: before a message is
// sent and, for those that Postgres answers at once, after it has acted on it and
// before the answer, and after the answer. A delivery that is not answered with 200 is
// delivered again, as the provider would; at the end each delivery comes once
// more, and check looks at the effects. A failure names the message and its SQL,
// without arguments.
//
// source makes the application: its tables, then its dispatcher with its
// handlers. It is called for each run, with a pool on an empty schema that holds
// the tables of package idem: make all rows in it that must be new. check returns an
// error that says which effects are lost or doubled. Its pool is another one, on
// the same schema. Nothing runs at the same time.
//
// deliveries are requests that verify, in their order: asaastest.Request and
// zeltapaytest.Request make them. List a body twice to put its duplicate through
// all this too.
//
// It finds effects that do not go through the handler's tx, and so happen again
// when the handler does, or are lost: writes through a pool, e-mails and HTTP
// requests (to a fake that check asks), keys made of the time, counters in
// memory, work after a COMMIT of the handler's own, errors of a pool that are not
// looked at, functions given to [idem.AfterCommit] that matter. The test also
// fails if a delivery fails without a fault, if a fault has an event parked, if
// check is satisfied before there is any effect, and if a fault did not happen,
// because the messages are not the same in every run.
//
// It cannot find faults in tables that check does not look at; effects that are lost or doubled when the
// process dies, such as a map in memory of sent messages; faults that show only
// for other data, for events at the same time or in another order, or when time
// is up. Connections that the handlers open themselves are not cut.
//
// A handler with a few statements takes one second or two: deliver few events,
// and let other tests try their fields.
func ExactlyOnce(
	t testing.TB,
	source func(pool *pgxpool.Pool) idem.Source,
	deliveries []*http.Request,
	check func(ctx context.Context, pool *pgxpool.Pool) error,
) {
	t.Helper()
	m := &matrix{TB: t, source: source, check: check}
	m.tryAll(deliveries)
}

// ExactlyOnceInbox is [ExactlyOnce] for an application that receives through an
// [idem.Inbox]. For one delivery after the other, it stores the event, and has a
// worker claim it and run the handler. The connection is cut in each of these steps,
// so it takes about three times as long as ExactlyOnce.
//
// The test does not wait for leases and retries: an event that has lost its claim, whose
// attempt failed, or for which the handler returned [idem.RetryAt] is due again immediately.
// The test fails if an event is still pending after five attempts.
func ExactlyOnceInbox(
	t testing.TB,
	source func(pool *pgxpool.Pool) idem.Source,
	deliveries []*http.Request,
	check func(ctx context.Context, pool *pgxpool.Pool) error,
) {
	t.Helper()
	m := &matrix{TB: t, source: source, check: check, byWorkers: true}
	m.tryAll(deliveries)
}

// mostFailures is the number of failures that one cause may have until more of them say
// nothing new.
const mostFailures = 3

// tryAll puts the application through every fault.
func (m *matrix) tryAll(deliveries []*http.Request) {
	m.Helper()
	m.connect()
	defer m.direct.Close()
	for n, r := range deliveries {
		m.stages = append(m.stages, m.stagesOf(n+1, r)...)
	}
	failures := 0
	for _, f := range m.faults() {
		if m.try(f) {
			continue
		}
		if failures++; failures == mostFailures {
			m.Fatalf("idemtest: %d faults had wrong effects: the rest is not tried", failures)
		}
	}
}

func (m *matrix) connect() {
	m.Helper()
	m.url = URL(m)
	m.direct = m.open(func(*pgxpool.Config) {})
	var schema string
	if err := m.direct.QueryRow(m.Context(), `select current_schema()`).Scan(&schema); err != nil {
		m.Fatal(err)
	}
	m.empty = emptying(schema)
}

// faults delivers everything without a fault, and returns those that are
// possible.
func (m *matrix) faults() (all []fault) {
	m.Helper()
	run := m.start()
	defer run.end()
	if m.check(m.Context(), m.direct) == nil {
		m.Fatal("idemtest: check is satisfied before anything is delivered: have it return an error for effects that are missing")
	}
	for i, s := range m.stages {
		run.proxy.Arm(pgproxy.Fault{})
		done, err := s.once(run)
		steps, _ := run.proxy.Disarm()
		if !done || err != nil {
			m.Fatalf("idemtest: %s fails without a fault: %v", s.name, err)
		}
		all = append(all, faultsIn(i, steps)...)
	}
	if err := m.check(m.Context(), m.direct); err != nil {
		m.Fatalf("idemtest: wrong effects without a fault: %v", err)
	}
	if err := errors.Join(run.finish(m.stages), m.check(m.Context(), m.direct)); err != nil {
		m.Fatalf("idemtest: wrong effects without a fault, when each delivery had come twice: %v", err)
	}
	return all
}

// try delivers everything with a fault, and reports whether the effects are right.
func (m *matrix) try(f fault) bool {
	m.Helper()
	run := m.start()
	defer run.end()
	err := run.finishWith(f)
	if err == nil {
		err = run.finish(m.stages) // each delivery comes once more
	}
	if err == nil {
		err = m.check(m.Context(), m.direct)
	}
	if err != nil {
		m.Errorf("idemtest: %s, %s, connection cut %s: %v", m.stages[f.stage].name, f.step, f.point, err)
	}
	return err == nil
}

// emptying is the SQL that ends the sessions which an application left in its
// schema, and empties that.
func emptying(schema string) string {
	return "select pg_terminate_backend(pid) from pg_stat_activity " +
		"where application_name = '" + schema + "' and pid <> pg_backend_pid();" +
		"drop schema " + schema + " cascade; create schema " + schema
}

// matrix is every fault that an application is put through.
type matrix struct {
	testing.TB
	source    func(*pgxpool.Pool) idem.Source
	check     func(context.Context, *pgxpool.Pool) error
	byWorkers bool // an inbox receives, and its workers process

	url    string
	direct *pgxpool.Pool // no fault happens to it
	empty  string        // SQL that empties the schema
	stages []stage       // of each trial
}

// stage is a part of a trial: a delivery, or the work on one. It is done when
// it would not be tried again, which may be with an error: the event is parked.
type stage struct {
	name string
	once func(*trial) (done bool, err error) // tries it
}

// trial is one run of the application, on an empty schema.
type trial struct {
	*matrix
	proxy  *pgproxy.Proxy
	pool   *pgxpool.Pool // the application's, through the proxy
	app    idem.Source
	stored *idem.Processor // reads the events, on the direct pool
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
	run.stored = idem.NewProcessor(m.direct, run.app)
	return run
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

// end finds the connections that the application left open.
func (run *trial) end() {
	run.Helper()
	if n := closePool(run.pool, 5*time.Second); n > 0 {
		run.Errorf("idemtest: %d connections of the pool are still in use after the deliveries: have the handler release them, and close rows and transactions", n)
	}
}

// patient is the number of tries of a stage: a cut connection costs one try, and
// leaves at most one more to stumble over.
const patient = 5

// finish tries stages, one after the other, until they are done.
func (run *trial) finish(stages []stage) error {
	for _, s := range stages {
		var done bool
		var err error
		for n := 0; n < patient && !done; n++ {
			done, err = s.once(run)
		}
		switch {
		case !done:
			return fmt.Errorf("%s still fails when it is tried %d times: %w", s.name, patient, err)
		case err != nil:
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// errNotCut is the error of a fault that did not happen.
var errNotCut = errors.New("that did not happen: have the handler send the same statements each time, and wait for no lock of its own")

// finishWith is finish for all stages, with a fault.
func (run *trial) finishWith(f fault) error {
	if err := run.finish(run.stages[:f.stage]); err != nil {
		return fmt.Errorf("before that, %w", err)
	}
	run.proxy.Arm(pgproxy.Fault{Step: f.step.Number, Point: f.point})
	done, err := run.stages[f.stage].once(run)
	_, happened := run.proxy.Disarm()
	if !done {
		err = run.finish(run.stages[f.stage : f.stage+1])
	}
	if err == nil {
		err = run.finish(run.stages[f.stage+1:])
	}
	if !happened {
		err = errors.Join(errNotCut, err)
	}
	return err
}

// stagesOf are the stages of the n-th delivery.
func (m *matrix) stagesOf(n int, r *http.Request) []stage {
	m.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.Fatalf("idemtest: a delivery's body cannot be read: %v", err)
	}
	delivery := stage{fmt.Sprintf("delivery %d", n), func(run *trial) (done bool, err error) {
		again := r.Clone(run.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		return run.deliver(again)
	}}
	if !m.byWorkers {
		return []stage{delivery}
	}
	return []stage{delivery, {fmt.Sprintf("work on delivery %d", n), (*trial).work}}
}

// deliver sends a request once. It is done when that is answered with 200.
func (run *trial) deliver(r *http.Request) (done bool, err error) {
	var seen idem.Observation
	w := httptest.NewRecorder()
	run.receiver(func(_ context.Context, o idem.Observation) { seen = o }).ServeHTTP(w, r)
	done = w.Code == http.StatusOK
	if !done || seen.Err != nil {
		err = fmt.Errorf("answered %d, %s: %v", w.Code, seen.Outcome, seen.Err)
	}
	return done, err
}

// receiver returns the application's receiver of deliveries.
func (run *trial) receiver(observe func(context.Context, idem.Observation)) http.Handler {
	if run.byWorkers {
		return run.inbox(observe)
	}
	p := idem.NewProcessor(run.pool, run.app)
	p.Logger, p.Observe = nil, observe
	return p
}

// inbox is an inbox that sends the same messages in every run: one worker, which
// is not woken.
func (run *trial) inbox(observe func(context.Context, idem.Observation)) *idem.Inbox {
	i := idem.NewInbox(run.pool, run.app)
	i.Logger, i.Observe = nil, observe
	i.Workers, i.PollOnly = 1, true
	return i
}

// timePasses ends all waiting. No workers are left: a claim that they have left behind is
// that of a process that died.
const timePasses = `
delete from idem_workers;
update idem_payloads set due_at = now() where due_at > now()`

// work has a worker make one attempt. It is done when no event is pending.
func (run *trial) work() (done bool, err error) {
	run.Helper()
	if run.pending() == nil {
		return true, nil // the delivery was a duplicate
	}
	if _, err := run.direct.Exec(run.Context(), timePasses); err != nil {
		run.Fatal(err)
	}
	ctx, stop := context.WithCancel(run.Context())
	defer stop()
	var seen idem.Observation
	drained := run.inbox(func(_ context.Context, o idem.Observation) {
		seen = o
		run.proxy.Disarm() // it is chance whether the worker looks for another event before it stops
		stop()             // Drain would sleep until a released claim is due
	}).Drain(ctx)
	err = run.pending()
	done = err == nil
	switch {
	case seen.Err != nil:
		err = fmt.Errorf("%s: %w", seen.Outcome, seen.Err)
	case seen.Outcome == "": // it did not come to an attempt
		err = errors.Join(err, drained)
	}
	return done, err
}

// pending returns an error that names an event which is pending, or nil.
func (run *trial) pending() error {
	run.Helper()
	for e, err := range run.stored.List(run.Context(), idem.Filter{States: []idem.State{idem.StatePending}}) {
		if err != nil {
			run.Fatal(err)
		}
		return fmt.Errorf("%s %s is pending, its last error is %q", e.Type, e.ID, e.LastError)
	}
	return nil
}

// fault is a point at which the connection is cut.
type fault struct {
	stage int // its index
	step  pgproxy.Step
	point pgproxy.Point
}

// faultsIn are the faults in a stage that make a difference. It is the same
// whether an answer that Postgres keeps back is lost or the next message is, and
// whether or not Postgres gets a message that changes nothing. Only the answer to COMMIT
// decides something by itself.
func faultsIn(stage int, steps []pgproxy.Step) (all []fault) {
	unchanged := false // since the fault before
	for _, step := range steps {
		if !unchanged {
			all = append(all, fault{stage, step, pgproxy.BeforeSent})
		}
		if step.Message == "Execute" && step.Statement == "commit" {
			all = append(all, fault{stage, step, pgproxy.BeforeAnswer})
		}
		if step.Answered {
			all = append(all, fault{stage, step, pgproxy.BeforeAnswer}, fault{stage, step, pgproxy.AfterAnswer})
		}
		unchanged = slices.Contains(preparing, step.Message)
	}
	return all
}

// preparing are the messages of which nothing is left without their connection.
var preparing = []string{"Parse", "Bind", "Describe"}
