package idemtest

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// ExactlyOnce tests that an application's handlers have their effects exactly
// once, wherever the connection to Postgres breaks.
//
// It delivers the requests once without a fault, and counts the messages that
// the application sends to Postgres. Then, for each of them, it starts anew and
// cuts the connection there: before the message is sent and, for those that
// Postgres answers at once, after it has acted on it and before the answer, and
// after the answer. What is not answered with 200 is delivered again, as the
// provider would; at the end each delivery comes once more, and check looks at
// the effects. A failure names the message and its SQL, without arguments.
//
// source makes the application: its tables, then its dispatcher with its
// handlers. It is called for each run, with a pool on an empty schema that holds
// the tables of package idem: make in it whatever must be new. check returns an
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
// memory, work after a COMMIT of the handler's own, errors of a pool that nobody
// looked at, functions given to [idem.AfterCommit] that matter. The test also
// fails if a delivery fails without a fault, if check is satisfied before there
// is any effect, and if a fault did not happen, because the messages are not the
// same in every run.
//
// It cannot find what check does not look at; what is lost or doubled when the
// process dies, such as a map in memory of what was sent; what goes wrong only
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
	m := newMatrix(t, source, check)
	defer m.direct.Close()
	for _, r := range deliveries {
		m.deliveries = append(m.deliveries, m.read(r))
	}
	failures := 0
	for i, steps := range m.count() {
		for _, step := range steps {
			for _, point := range points(step) {
				if m.cut(i, step, point) {
					continue
				}
				if failures++; failures == mostFailures {
					t.Fatalf("idemtest: %d faults had wrong effects: the rest is not tried", failures)
				}
			}
		}
	}
}

// points are where around a message a cut makes a difference. To the client it
// is the same whether an answer that Postgres keeps back is lost or the next
// message is.
func points(s pgproxy.Step) []pgproxy.Point {
	if s.Answered {
		return pgproxy.Points
	}
	return []pgproxy.Point{pgproxy.BeforeSent}
}

// mostFailures is how many failures one cause may have until more of them say
// nothing new.
const mostFailures = 3

// matrix is every fault that an application is put through.
type matrix struct {
	testing.TB
	url        string
	direct     *pgxpool.Pool // no fault happens to it
	empty      string        // SQL that empties the schema
	source     func(*pgxpool.Pool) idem.Source
	deliveries []delivery
	check      func(context.Context, *pgxpool.Pool) error
}

func newMatrix(t testing.TB, source func(*pgxpool.Pool) idem.Source, check func(context.Context, *pgxpool.Pool) error) *matrix {
	t.Helper()
	m := &matrix{TB: t, url: URL(t), source: source, check: check}
	m.direct = m.open(func(*pgxpool.Config) {})
	var schema string
	if err := m.direct.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	m.empty = emptying(schema)
	return m
}

// count delivers everything without a fault. It returns the messages that each
// delivery led to.
func (m *matrix) count() (steps [][]pgproxy.Step) {
	m.Helper()
	run := m.start()
	defer run.end()
	if m.check(m.Context(), m.direct) == nil {
		m.Fatal("idemtest: check is satisfied before anything is delivered: have it return an error for effects that are missing")
	}
	for i, d := range m.deliveries {
		run.proxy.Arm(pgproxy.Fault{})
		status := run.deliver(d)
		sent, _ := run.proxy.Disarm()
		if status != http.StatusOK || run.err != nil {
			m.Fatalf("idemtest: delivery %d is answered %d without a fault: %v", i+1, status, run.err)
		}
		steps = append(steps, sent)
	}
	if err := m.check(m.Context(), m.direct); err != nil {
		m.Fatalf("idemtest: wrong effects without a fault: %v", err)
	}
	run.deliverUntilStored(m.deliveries)
	if err := m.check(m.Context(), m.direct); err != nil {
		m.Fatalf("idemtest: wrong effects without a fault, when each delivery had come twice: %v", err)
	}
	return steps
}

// cut delivers everything with a fault in the i-th delivery, and tells whether
// the effects are right.
func (m *matrix) cut(i int, step pgproxy.Step, point pgproxy.Point) bool {
	m.Helper()
	run := m.start()
	defer run.end()
	run.deliverUntilStored(m.deliveries[:i])
	run.proxy.Arm(pgproxy.Fault{Step: step.Number, Point: point})
	status := run.deliver(m.deliveries[i])
	_, fired := run.proxy.Disarm()
	if status != http.StatusOK {
		run.deliverUntilStored(m.deliveries[i : i+1])
	}
	run.deliverUntilStored(m.deliveries[i+1:])
	run.deliverUntilStored(m.deliveries) // each comes once more
	err := m.check(m.Context(), m.direct)
	switch {
	case !fired:
		m.Errorf("idemtest: delivery %d, %s: the connection was not cut there: have the handler send the same statements each time, and wait for no lock of its own", i+1, step)
	case err != nil:
		m.Errorf("idemtest: delivery %d, %s, connection cut %s: %v", i+1, step, point, err)
	}
	return fired && err == nil
}

// emptying is the SQL that ends the sessions which an application left in its
// schema, and empties that.
func emptying(schema string) string {
	return "select pg_terminate_backend(pid) from pg_stat_activity " +
		"where application_name = '" + schema + "' and pid <> pg_backend_pid();" +
		"drop schema " + schema + " cascade; create schema " + schema
}
