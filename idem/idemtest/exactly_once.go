package idemtest

import (
	"context"
	"errors"
	"net/http"
	"testing"

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
