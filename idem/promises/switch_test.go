package promises_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// An event that comes behind an older one of its key waits for it, also where deliveries work first: it is stored and
// answered at once, and not tried.
func TestEventBehindOneOfTheWorkersTakesItsPlaceInTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.on(m.handle)
	s.openInbox()
	s.workersElsewhere("notes")
	s.store(letter("bad1", "o1", 0))
	s.drain(1) // it blocks its key
	for range 3 {
		s.wantAnswer(paid("e2"), http.StatusOK)
		s.wantRow("e2", "(state, attempts, last_error)", `(pending,0,)`)
	}
	s.store(letter("e3", "o1", 0), letter("x", "o2", 0))
	s.drain(1) // x: e2 and e3 wait
	m.fixed.Store(true)
	s.wantRequeued(idem.Filter{IDs: []string{"bad1"}}, 1)
	s.drain(3)
	m.wantDone(t, "bad1", "e2", "e3")
}

// A delivery that comes again makes an event pending that waits for a person or a handler, with all its attempts, and
// leaves alone one that workers are next for.
func TestEventThatComesAgainIsTheWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		again  idem.Outcome
		want   idem.State
	}{
		"parked":                        {"state = 'parked', attempts = 20", idem.Pending, idem.StatePending},
		"unhandled":                     {"state = 'unhandled'", idem.Pending, idem.StatePending},
		"pending":                       {"attempts = 0", idem.Duplicate, idem.StatePending},
		"discarded":                     {"state = 'discarded'", idem.Duplicate, idem.StateDiscarded},
		"of a state of a newer version": {"state = 'postponed'", idem.Retrying, "postponed"},
	} {
		for _, first := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newApp(t).openInbox()
				s.on(pay)
				s.workersElsewhere("notes")
				e := letter("e1", "o1", 0)
				s.store(e)
				s.exec(`update idem_events set ` + c.before)
				s.inbox.WorkFirst = first
				if outcome, err := s.inbox.Accept(t.Context(), e); outcome != c.again || (err == nil) != c.again.Acknowledged() {
					t.Errorf("Accept = %s, %v, want %s", outcome, err, c.again)
				}
				s.wantRow("e1", "(state, attempts)", "("+string(c.want)+",0)")
				s.wantEffects(0)
				if c.want == idem.StatePending {
					s.drain(1)
					s.wantEffects(1)
				}
			})
		}
	}
}

// A delivery of an event that a worker is processing is a duplicate at once.
func TestDeliveryAndWorkerOnOneEventHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered) // panics if the delivery gets here, too
		<-release
		return pay(ctx, tx, n)
	})
	s.store(letter("e1", "o1", 0))
	s.start(s.inbox)
	<-entered
	if status, answer := s.deliver(paid("e1")); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
		t.Errorf("the delivery was answered %d %s, want a duplicate", status, answer)
	}
	close(release)
	s.wantWorked(idem.Done)
	s.wantEffects(1)
}

// A first try and a worker never process two events of one entity at once: the delivery does not wait for the worker.
func TestFirstTryAndWorkerOfOneEntityTakeTurns(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.workersElsewhere("notes")
	var inFlight, most atomic.Int32
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		defer inFlight.Add(-1)
		most.Store(max(most.Load(), inFlight.Add(1)))
		if n.ID == "e2" { // the worker's
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	s.store(letter("e2", "o1", 2))
	var worker sync.WaitGroup
	worker.Go(func() { s.drain() })
	<-entered
	if o, err := s.first.Accept(t.Context(), letter("e1", "o1", 1)); o != idem.Pending || err != nil {
		t.Errorf("Accept = %s, %v, want pending", o, err)
	}
	close(release)
	worker.Wait()
	s.wantEffects(2)
	if n := most.Load(); n != 1 {
		t.Errorf("%d events of one entity were processed at once", n)
	}
}
