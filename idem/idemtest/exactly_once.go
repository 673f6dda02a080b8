package idemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// ExactlyOnce tests that an application's handlers have their effects exactly
// once, wherever the connection to Postgres breaks.
//
// It delivers the requests to an [idem.Inbox] with WorkFirst, and without workers, without a fault, and counts the
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
	m.tryFaults(deliveries)
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
	m.tryFaults(deliveries)
}

// tryFaults puts the application through every fault.
func (m *matrix) tryFaults(deliveries []*http.Request) {
	m.Helper()
	m.connect()
	defer m.direct.Close()
	for n, r := range deliveries {
		d := m.read(r)
		m.stages = append(m.stages, stage{fmt.Sprintf("delivery %d", n+1), func(run *trial) (bool, error) { return run.deliver(d) }})
		if m.byWorkers {
			m.stages = append(m.stages, stage{fmt.Sprintf("work on delivery %d", n+1), (*trial).attempt})
		}
	}
	for _, f := range m.faults() {
		m.try(f)
	}
}

// stage is a part of a trial: a delivery, or the work on one. It is done when
// it would not be tried again, which may be with an error: the event is parked.
type stage struct {
	name string
	once func(*trial) (done bool, err error) // tries it
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

// try delivers everything with a fault, and looks at the effects.
func (m *matrix) try(f fault) {
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
		m.wrong("%s, %s, connection cut %s: %v", m.stages[f.stage].name, f.step, f.point, err)
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

// attempt has a worker make one attempt. It is done when no event is pending.
func (run *trial) attempt() (done bool, err error) {
	run.Helper()
	if run.stored(idem.StatePending) == nil {
		return true, nil // the delivery was a duplicate
	}
	ctx, stop := context.WithCancel(run.Context())
	defer stop()
	var seen idem.Observation
	drained := run.work(ctx, func(_ context.Context, o idem.Observation) {
		seen = o
		run.proxy.Disarm() // it is chance whether the worker looks for another event before it stops
		stop()             // Drain would sleep until a released claim is due
	})
	err = run.stored(idem.StatePending)
	done = err == nil
	switch {
	case seen.Err != nil:
		err = fmt.Errorf("%s: %w", seen.Outcome, seen.Err)
	case seen.Outcome == "": // it did not come to an attempt
		err = errors.Join(err, drained)
	}
	return done, err
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
