package idem_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// swap has all that is parked leave that state by hand, and parks as many others, a payment among them.
func (s *app) swap(n int) {
	s.Helper()
	s.exec(`update idem_events set state = 'pending' where state = 'parked';
		update idem_payloads p set due_at = now(), lane = event`)
	for i := range n {
		s.exec(fmt.Sprintf(`insert into idem_events (event, type, key, state) values ('notes//payment%d', 'paid', '', 'parked')`, i))
	}
	s.exec(`insert into idem_payloads (event, source, received_at, body)
		select event, 'notes', received_at, '{}' from idem_events where state = 'parked'`)
}

func TestActionIsBoundToTheEventsThatWereShown(t *testing.T) {
	t.Parallel()
	actions := map[string]func(context.Context, *operator.Operator, idem.Filter) (int64, error){
		"discard": func(ctx context.Context, o *operator.Operator, f idem.Filter) (int64, error) {
			return o.Discard(ctx, f, "noise")
		},
		"requeue": func(ctx context.Context, o *operator.Operator, f idem.Filter) (int64, error) {
			o.RequeueWithoutWorkers = true
			return o.Requeue(ctx, f, "noise")
		},
		"replay": func(ctx context.Context, o *operator.Operator, f idem.Filter) (int64, error) {
			sum, err := o.Replay(ctx, f, "noise")
			return int64(sum.Done + sum.Failed + sum.Unhandled), err
		},
		"dry replay": func(ctx context.Context, o *operator.Operator, f idem.Filter) (int64, error) {
			sum, err := o.DryReplay(ctx, f, "noise")
			return int64(sum.Done + sum.Failed + sum.Unhandled), err
		},
	}
	for action, do := range actions {
		t.Run(action+" of seven that became seven others", func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.on(refuseBad)
			for n := range 7 {
				s.store(letter(fmt.Sprintf("bad%d", n), fmt.Sprint(n), 0))
			}
			s.drain(7)
			ana := operator.New(s.inbox, "ana")
			shown, err := ana.Choose(t.Context(), idem.Filter{States: []idem.State{idem.StateParked}})
			if err != nil || len(shown.Events) != 7 {
				t.Fatalf("Choose = %+v, %v, want seven events", shown, err)
			}
			s.swap(7)
			if n, err := do(t.Context(), ana, shown); n != 0 || err != nil {
				t.Errorf("it acted on %d events, %v, want none", n, err)
			}
			if n := queryOne[int](s, `select count(*) from idem_events where state = 'parked' and event like '%payment%' and attempts = 0`); n != 7 {
				t.Errorf("%d of the other seven are as they were", n)
			}
			s.wantTrail(0, "; 7 left alone: done, in another state by now, or being processed")
		})
		t.Run(action+" of some that left", func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.on(refuseBad)
			s.store(letter("bad1", "1", 0), letter("bad2", "2", 0), letter("bad3", "3", 0))
			s.drain(3)
			ana := operator.New(s.inbox, "ana")
			shown, err := ana.Choose(t.Context(), idem.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			s.wantReplayed(idem.Filter{IDs: []string{"bad3"}}, idem.Replayed{Failed: 1}) // it stays
			s.wantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "by another", 1)
			s.store(letter("bad4", "4", 0))
			s.drain(1)
			if n, err := do(t.Context(), ana, shown); n != 2 || err != nil {
				t.Errorf("it acted on %d events, %v, want 2", n, err)
			}
			s.wantState("bad4", idem.StateParked)
			s.wantTrail(2, "; 1 left alone: done, in another state by now, or being processed")
		})
	}
}

// wantTrail checks how many events the latest action is recorded with, and that its result ends so.
func (s *app) wantTrail(events int, result string) {
	s.Helper()
	trail := s.trail()
	a := trail[len(trail)-1]
	keys, err := operator.New(s.inbox, "").ActionEvents(s.Context(), a.ID)
	if err != nil || len(keys) != events || a.Events != int64(events) {
		s.Errorf("the trail has the events %q, %v, want %d", keys, err, events)
	}
	if got := a.Result; !strings.Contains(got, result) {
		s.Errorf("the trail has the result %q, want %q in it", got, result)
	}
}

// An action whose change is not recorded has not happened.
func TestChangeAndItsRecordAreOneTransaction(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(refuseBad)
	s.store(letter("bad1", "1", 0), letter("bad2", "2", 0))
	s.drain(2)
	s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'the disk is full'; end $$;
		create trigger refuse before update on idem_audit for each row when (new.result like '%carded' or new.result like '%queued') execute function refuse()`)
	ana := operator.New(s.inbox, "ana")
	if n, err := ana.Discard(t.Context(), idem.Filter{IDs: []string{"bad1"}}, "noise"); n != 0 || err == nil {
		t.Errorf("Discard = %d, %v, want an error", n, err)
	}
	if n, err := ana.Requeue(t.Context(), idem.Filter{IDs: []string{"bad2"}}, "noise"); n != 0 || err == nil {
		t.Errorf("Requeue = %d, %v, want an error", n, err)
	}
	s.wantState("bad1", idem.StateParked)
	s.wantState("bad2", idem.StateParked)
	for _, a := range s.trail() {
		if a.EndedAt.IsZero() || !strings.Contains(a.Result, "failed: ") {
			t.Errorf("the trail has %+v", a)
		}
	}
}

// A page and a command show what was chosen.
func TestChooseNamesEventsInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(refuseBad)
	s.store(letter("bad2", "2", 0))
	s.store(in("shop/1", letter("bad1", "1", 0)))
	s.drain(2)
	shown, err := s.inbox.Choose(t.Context(), idem.Filter{Types: []string{"paid"}})
	want := idem.Filter{Types: []string{"paid"}, Events: []string{"notes//bad2", "notes/shop%2F1/bad1"}}
	if diff := cmp.Diff(want, shown); diff != "" || err != nil {
		t.Error(err, "Choose (-want +got):\n"+diff)
	}
	none, err := s.inbox.Choose(t.Context(), idem.Filter{Types: []string{"other"}})
	if err != nil || none.Events == nil {
		t.Errorf("Choose = %+v, %v, want an empty list, which chooses nothing", none, err)
	}
	s.wantDiscarded(none, "noise", 0)
}

// An action whose filter matches nothing is not one without a filter.
func TestActionThatChoosesNothingActsOnNothing(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(refuseBad)
	s.store(letter("bad1", "o1", 0), letter("bad2", "o2", 0))
	s.drain(2)
	want := s.contents()
	ana := operator.New(s.inbox, "ana")
	ana.RequeueWithoutWorkers = true
	nothing := idem.Filter{Types: []string{"no such type"}}
	if shown, err := ana.Choose(t.Context(), nothing); err != nil || shown.Events == nil || len(shown.Events) != 0 {
		t.Errorf("Choose = %+v, %v, want an empty list", shown, err)
	}
	for action, do := range map[string]func() (int64, error){
		"discard": func() (int64, error) { return ana.Discard(t.Context(), nothing, "") },
		"requeue": func() (int64, error) { return ana.Requeue(t.Context(), nothing, "") },
		"replay": func() (int64, error) {
			sum, err := ana.Replay(t.Context(), nothing, "")
			return int64(sum.Done + sum.Failed + sum.Unhandled), err
		},
	} {
		if n, err := do(); n != 0 || err != nil {
			t.Errorf("%s: %d events, %v, want none", action, n, err)
		}
	}
	s.wantContents(want)
}
