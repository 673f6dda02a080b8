package idem_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// The connection breaks at every message of every path: before it is
// sent, after Postgres has acted on it and before its answer, after its answer.
// Then the event comes again. There is one effect, and no 200 for what is not
// stored.
func TestConnectionCutAnywhereNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(paths, inboxPaths) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, p, idemtest.URL(t))
			for _, step := range r.steps() {
				for _, point := range pgproxy.Points {
					r.fail(step, pgproxy.Fault{Step: step.Number, Point: point})
				}
			}
		})
	}
}

// The administrator, or a failover, ends the server process before any message.
func TestBackendTerminatedAnywhereNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(paths, inboxPaths) {
		if p.cold {
			continue // before a connection there is no process to end
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, p, idemtest.URL(t))
			for _, step := range r.steps() {
				r.fail(step, pgproxy.Fault{Step: step.Number, Point: pgproxy.BeforeSent, Do: r.terminate})
			}
		})
	}
}

// connect takes another event through the path: connections are open
// afterwards, and statements prepared. If the path is cold, there are neither.
func (r *rig) connect() {
	r.Helper()
	if r.cold {
		r.reopen()
		return
	}
	id := r.prepare()
	r.takeAgain(id)
	r.finish(id) // else the next worker goes on with it, or it holds the events after it
}

// steps are the messages of one run without a fault, those of other rows apart.
func (r *rig) steps() []pgproxy.Step {
	r.Helper()
	r.connect()
	id := r.prepare()
	before := r.stored(id)
	r.proxy.Arm(pgproxy.Fault{})
	r.take(id)
	steps, _ := r.proxy.Disarm()
	if got := r.stored(id); r.later && got != r.want {
		r.Fatalf("without a fault stored is %+v, want %+v", got, r.want)
	}
	r.finish(id)
	if before.Effects < r.want.Effects && !slices.ContainsFunc(steps, isCommit) {
		r.Fatalf("the effect is there, and no message has committed it: %v", steps)
	}
	own := r.ownOf(steps)
	if len(own) == 0 {
		r.Fatalf("no message is the path's own: %v", steps)
	}
	return own
}

func isCommit(s pgproxy.Step) bool { return s.Statement == "commit" && s.Answered }

// fail takes an event through the path while a fault happens, and again
// afterwards.
func (r *rig) fail(step pgproxy.Step, f pgproxy.Fault) {
	r.Helper()
	r.connect()
	id := r.prepare()
	r.proxy.Arm(f)
	outcome := r.take(id)
	steps, fired := r.proxy.Disarm()
	if !fired || steps[f.Step-1] != step {
		r.Fatalf("%s: fired is %t, and these are the steps: %v", step, fired, steps)
	}
	if !r.byWorkers && !r.fails && isCommit(step) && f.Point == pgproxy.BeforeAnswer {
		r.wantLostAnswer(id, outcome)
	}
	if !outcome.Acknowledged() {
		r.takeAgain(id)
	}
	r.finish(id)
	if r.Failed() {
		r.Fatalf("%s, fault %s: first the outcome was %s", step, f.Point, outcome)
	}
}

// wantLostAnswer: the work is done, which is found out on another connection, or when the event comes again.
func (r *rig) wantLostAnswer(id string, outcome idem.Outcome) {
	r.Helper()
	if outcome.Acknowledged() && outcome != idem.Done || r.stored(id) != r.want {
		r.Errorf("the answer to COMMIT is lost: outcome %s, stored is %+v, want %+v, and done or no 200", outcome, r.stored(id), r.want)
	}
	want := idem.Duplicate
	if r.want == parked {
		want = idem.Parked // it waits, and is told so again
	}
	if again := r.take(id); again != want && !(r.goesOn && again == idem.Done) {
		r.Errorf("the answer to COMMIT was lost: at the redelivery the outcome is %s, want %s", again, want)
	}
}

// terminate ends a server process, and waits until it is gone.
func (r *rig) terminate(backend uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const end = `select coalesce((select pg_terminate_backend(pid) from pg_stat_activity where pid = $1), false)`
	for there := true; there; {
		if err := r.app.pool.QueryRow(ctx, end, backend).Scan(&there); err != nil {
			r.Errorf("terminating %d: %v", backend, err)
			return
		}
	}
}
