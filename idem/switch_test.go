package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func TestEventThatFailsTooOftenInlineIsHandedToTheInbox(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	var runs atomic.Int32
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs.Add(1) <= 3 {
			return errors.New("no such order")
		}
		return m.handle(ctx, tx, n)
	})
	s.processor.ParkAfter, s.processor.HandToInbox = 3, true
	o := newOffice(s, s.pool)
	o.queue(booking("later", "o2"))
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.wantState("e1", idem.StateRetrying)
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantState("e1", idem.StatePending)
	s.wantPayload("e1", paid("e1"))
	if diff := cmp.Diff([]idem.Outcome{idem.Retrying, idem.Retrying, idem.Pending}, s.outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
	if got := s.listed(idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}); len(got) != 1 || got[0].Attempts != 3 || got[0].LastError != "no such order" {
		t.Errorf("handed over as %+v", got)
	}
	m.mended.Store(true)
	o.work(2)
	s.wantEffects(2)
	s.wantState("e1", idem.StateDone)
	s.wantPayload("e1", "")
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(2)
}

// Handed over, an event waits behind the older ones of its key.
func TestHandedOverEventTakesItsPlaceInTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	s.on(m.handle)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "o1"))
	o.work(1) // it blocks its key
	broken := &notes{}
	idem.Handle(&broken.Routes, "paid", func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	p := idem.NewProcessor(s.pool, broken)
	p.Logger, p.ParkAfter, p.HandToInbox = s.processor.Logger, 1, true
	if outcome, err := p.Accept(t.Context(), booking("e2", "o1")); outcome != idem.Pending || err != nil {
		t.Fatalf("Accept = %s, %v, want queued", outcome, err)
	}
	o.queue(booking("e3", "o1"), booking("x", "o2"))
	o.work(1) // x: e2 and e3 wait
	s.wantState("e2", idem.StatePending)
	m.mended.Store(true)
	o.wantRequeued(s.pool, idem.Filter{}, 1)
	m.done = nil
	o.work(3)
	if diff := cmp.Diff([]string{"bad1", "e2", "e3"}, m.done); diff != "" {
		t.Error("done (-want +got):\n" + diff)
	}
}

func TestEventThatMustNotBeTriedAgainIsParkedAtOnceInline(t *testing.T) {
	t.Parallel()
	for _, hand := range []bool{false, true} {
		t.Run(fmt.Sprintf("HandToInbox=%t", hand), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.on(refuseBad)
			s.processor.HandToInbox = hand
			s.wantAnswer(paid("bad1"), http.StatusOK)
			s.wantState("bad1", idem.StateParked)
			s.wantPayload("bad1", paid("bad1"))
			if diff := cmp.Diff([]idem.Outcome{idem.Parked}, s.outcomes()); diff != "" {
				t.Error("outcomes (-want +got):\n" + diff)
			}
			s.wantEffects(0)
		})
	}
}

// The application worked inline, and has become an inbox: what the provider
// sends again is taken up in the state that it was left in.
func TestEventsLeftByInlineModeAreTakenUpByAnInbox(t *testing.T) {
	t.Parallel()
	for name, leave := range map[idem.State]func(*shop, idem.Event){
		idem.StateRetrying: func(s *shop, e idem.Event) {
			if outcome, err := s.processor.Accept(s.Context(), e); outcome != idem.Retrying || err == nil {
				s.Fatal(outcome, err)
			}
		},
		idem.StateParked: func(s *shop, e idem.Event) {
			s.processor.ParkAfter = 1
			if outcome, err := s.processor.Accept(s.Context(), e); outcome != idem.Parked {
				s.Fatal(outcome, err)
			}
		},
		idem.StateUnhandled: func(s *shop, e idem.Event) {
			s.deploy(func(*notes) {})
			if outcome, err := s.processor.Accept(s.Context(), e); outcome != idem.Unhandled {
				s.Fatal(outcome, err)
			}
		},
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
			e := booking("e1", "o1")
			leave(s, e)
			s.wantState("e1", name)
			s.deploy(func(n *notes) { idem.Handle(&n.Routes, "paid", pay) })
			o := newOffice(s, s.pool)
			o.queue(e)
			s.wantState("e1", idem.StatePending)
			if outcome, err := o.Accept(t.Context(), e); outcome != idem.Duplicate || err != nil {
				t.Errorf("the next delivery is %s, %v, want duplicate", outcome, err)
			}
			if got := s.listed(idem.Filter{States: []idem.State{idem.StatePending}}); len(got) != 1 || got[0].Attempts != 0 {
				t.Errorf("taken up as %+v, want it with all its attempts", got)
			}
			o.work(1)
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
			s.wantPayload("e1", "")
		})
	}
}

// The application was an inbox, and works inline now.
func TestPendingEventThatComesAgainIsDoneInline(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	o := newOffice(s, s.pool)
	o.queue(booking("e1", "o1"), booking("e2", "o1"), booking("claimed", "o2"))
	s.exec(`insert into idem_claims select event, now() + interval '10 s' from idem_events where event like '%claimed'`)
	for _, id := range []string{"e2", "claimed"} { // inline mode keeps no order
		s.wantAnswer(paid(id), http.StatusOK)
		s.wantAnswer(paid(id), http.StatusOK)
		s.wantState(id, idem.StateDone)
		s.wantPayload(id, "")
	}
	s.wantEffects(2)
	o.work(1) // e1: nothing else is left
	s.wantEffects(3)
	if diff := cmp.Diff([]idem.Outcome{idem.Done, idem.Duplicate, idem.Done, idem.Duplicate}, s.outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

func TestPendingEventThatFailsInlineStaysPending(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	s.on(m.handle)
	s.processor.ParkAfter = 1
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "o1"))
	s.wantAnswer(paid("bad1"), http.StatusOK) // it is stored
	s.wantState("bad1", idem.StatePending)
	m.mended.Store(true)
	o.work(1)
	s.wantEffects(1)
}

// A delivery that meets a worker waits for it; a worker that meets a delivery
// goes on with other events.
func TestDeliveryAndWorkerOnOneEventHaveOneEffect(t *testing.T) {
	t.Parallel()
	t.Run("the worker is first", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		entered, release := make(chan struct{}), make(chan struct{})
		s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
			close(entered) // panics if the delivery gets here, too
			<-release
			return pay(ctx, tx, n)
		})
		o := newOffice(s, s.pool)
		o.queue(booking("e1", "o1"))
		stop := o.start()
		defer stop()
		<-entered
		var deliveries sync.WaitGroup
		deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
		s.awaitLock()
		close(release)
		deliveries.Wait()
		if seen := o.next(); seen.Outcome != idem.Done {
			t.Errorf("the worker's outcome is %s, %v", seen.Outcome, seen.Err)
		}
		if diff := cmp.Diff([]idem.Outcome{idem.Duplicate}, s.outcomes()); diff != "" {
			t.Error("outcomes of the delivery (-want +got):\n" + diff)
		}
		s.wantEffects(1)
	})
	t.Run("the delivery is first", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		entered, release := make(chan struct{}), make(chan struct{})
		s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
			if n.ID == "e1" {
				close(entered)
				<-release
			}
			return pay(ctx, tx, n)
		})
		o := newOffice(s, s.pool)
		o.queue(booking("e1", "o1"))
		var deliveries sync.WaitGroup
		deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
		<-entered
		o.queue(booking("e0", "a"), booking("e9", "z")) // on both sides of its queue
		o.work(2)
		close(release)
		deliveries.Wait()
		s.wantEffects(3)
		o.queue(booking("last", "o1"))
		o.work(1)
		s.wantEffects(4)
	})
}

// awaitLock returns once a statement of this shop waits for a row.
func (s *shop) awaitLock() {
	s.Helper()
	const waits = `select exists (select from pg_locks l join pg_stat_activity a using (pid)
		where not l.granted and a.query like '%idem_events%'
		  and a.pid in (select pid from pg_locks where relation = 'idem_events'::regclass))`
	for !queryOne[bool](s, waits) {
		if err := s.Context().Err(); err != nil {
			s.Fatal(err)
		}
	}
}
