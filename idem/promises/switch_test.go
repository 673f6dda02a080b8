package promises_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// An event that comes inline waits behind the older ones of its key that workers have.
func TestEventBehindOneOfTheWorkersTakesItsPlaceInTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.on(m.handle)
	s.openInbox()
	s.store(letter("bad1", "o1", 0))
	s.drain(1) // it blocks its key
	broken := &notes{}
	idem.Handle(&broken.Routes, "paid", func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	p := newFirst(s.pool, broken)
	p.Logger = s.first.Logger
	if outcome, err := p.Accept(t.Context(), letter("e2", "o1", 0)); outcome != idem.Parked || err != nil {
		t.Fatalf("Accept = %s, %v, want parked", outcome, err)
	}
	s.store(letter("e3", "o1", 0), letter("x", "o2", 0))
	s.drain(1) // x: e2 and e3 wait
	s.wantState("e2", idem.StateParked)
	m.fixed.Store(true)
	s.wantRequeued(idem.Filter{IDs: []string{"bad1"}}, 1)
	s.drain(3)
	m.wantDone(t, "bad1", "e2", "e3")
}

// What is behind a parked event can only wait, for days maybe. Were the provider asked
// to deliver it again and again, its queue would stop. Workers, where there are any, go
// on with it.
func TestEventThatWaitsForAnEarlierOneIsAcknowledgedAtOnce(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.on(m.handle)
	s.openInbox()
	s.store(letter("bad1", "o1", 0))
	s.drain(1) // it blocks its key
	for range 3 {
		s.wantAnswer(paid("e2"), http.StatusOK)
		s.wantRow("e2", "(state, attempts, last_error)", `(parked,0,"waits for bad1")`)
	}
	m.fixed.Store(true)
	s.wantRequeued(idem.Filter{IDs: []string{"bad1"}}, 1)
	s.drain(2)
	m.wantDone(t, "bad1", "e2")
}

func TestEventThatMustNotBeTriedAgainIsParkedAtOnceInline(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(refuseBad)
	s.wantAnswer(paid("bad1"), http.StatusOK)
	s.wantState("bad1", idem.StateParked)
	s.wantPayload("bad1", paid("bad1"))
	if diff := cmp.Diff([]idem.Outcome{idem.Parked}, s.outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
	s.wantEffects(0)
}

// The application worked inline, and has become an inbox: what the provider
// sends again is taken up in the state that it was left in.
func TestEventsLeftByInlineModeAreProcessedByAnInbox(t *testing.T) {
	t.Parallel()
	for name, leave := range map[idem.State]func(*app, idem.Event){
		stateRetrying: func(s *app, e idem.Event) {
			if outcome, err := s.first.Accept(s.Context(), e); outcome != idem.Retrying || err == nil {
				s.Fatal(outcome, err)
			}
		},
		idem.StateParked: func(s *app, e idem.Event) {
			if outcome, err := s.first.Accept(s.Context(), e); outcome != idem.Parked {
				s.Fatal(outcome, err)
			}
		},
		idem.StateUnhandled: func(s *app, e idem.Event) {
			s.deploy(func(*notes) {})
			if outcome, err := s.first.Accept(s.Context(), e); outcome != idem.Unhandled {
				s.Fatal(outcome, err)
			}
		},
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
			e := letter("e1", "o1", 0)
			leave(s, e)
			s.wantState("e1", name)
			s.deploy(func(n *notes) { idem.Handle(&n.Routes, "paid", pay) })
			s.openInbox()
			s.store(e)
			s.wantState("e1", idem.StatePending)
			if outcome, err := s.inbox.Accept(t.Context(), e); outcome != idem.Duplicate || err != nil {
				t.Errorf("the next delivery is %s, %v, want duplicate", outcome, err)
			}
			if got := s.listed(idem.Filter{States: []idem.State{idem.StatePending}}); len(got) != 1 || got[0].Attempts != 0 {
				t.Errorf("taken up as %+v, want it with all its attempts", got)
			}
			s.drain(1)
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
			s.wantPayload("e1", "")
		})
	}
}

// Another process tries it at this moment, and may fail: what is answered 200 now would not come again.
func TestRetryingEventThatIsTriedInlineMustComeToTheInboxAgain(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	e := letter("e1", "o1", 0)
	if outcome, err := s.first.Accept(t.Context(), e); outcome != idem.Retrying || err == nil {
		t.Fatal(outcome, err)
	}
	s.openInbox()
	other := s.session(`begin; select from idem_events where event like '%/e1' for update`)
	if outcome, err := s.inbox.Accept(t.Context(), e); outcome != idem.Retrying || err == nil {
		t.Errorf("Accept = %s, %v, want retrying", outcome, err)
	}
	s.wantState("e1", stateRetrying)
	if _, err := other.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	s.store(e)
	s.wantState("e1", idem.StatePending)
}

// The application was an inbox, and works inline now: what is pending is done by
// the inbox's workers, in its order, or by Replay.
func TestPendingEventThatComesAgainInlineIsLeftToItsWorkers(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.on(pay)
	s.store(letter("e1", "o1", 0), letter("e2", "o1", 0), letter("claimed", "o2", 0))
	s.claimElsewhere("claimed")
	for _, id := range []string{"e2", "claimed"} {
		if status, answer := s.deliver(paid(id)); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
			t.Errorf("a delivery of %s is answered %d %s, want a duplicate", id, status, answer)
		}
		s.wantState(id, idem.StatePending)
	}
	s.wantEffects(0)
	s.drain(2)
	s.wantEffects(2)
	s.wantReplayed(idem.Filter{States: []idem.State{idem.StatePending}}, idem.Replayed{Done: 1}) // the claimed one: its worker has not begun
	s.wantEffects(3)
}

// A delivery that meets a worker waits for it, and is a duplicate once that has
// committed.
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
	var delivery sync.WaitGroup
	delivery.Go(func() {
		if status, answer := s.deliver(paid("e1")); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
			t.Errorf("the delivery was answered %d %s, want a duplicate", status, answer)
		}
	})
	s.until(blocked)
	close(release)
	delivery.Wait()
	s.wantWorked(idem.Done)
	s.wantEffects(1)
}

// An event that inline mode left is processed by the delivery that comes again,
// while workers process events of its entity that came to the inbox: never two
// of one entity at once.
func TestDeliveryAndWorkersOfOneEntityTakeTurns(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	var inFlight, most atomic.Int32
	broken := true
	first := make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if broken {
			return errors.New("no such order")
		}
		defer inFlight.Add(-1)
		if now := inFlight.Add(1); now > most.Load() {
			most.Store(now)
		}
		if n.ID == "e1" {
			close(first)
			if err := s.await(ctx, blocked); err != nil { // the worker of e2 has looked meanwhile, or waits
				return err
			}
		}
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	broken = false
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
	<-first
	s.store(letter("e2", "o1", 0))
	deliveries.Go(func() {
		s.wantReplayed(idem.Filter{States: []idem.State{idem.StatePending}}, idem.Replayed{Done: 1})
	})
	deliveries.Wait()
	s.wantEffects(2)
	if n := most.Load(); n != 1 {
		t.Errorf("%d events of one entity were processed at once", n)
	}
}
