package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestWhatAnOperatorDoesIsInTheAuditTrail(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	m := &fixable{}
	s.On(m.Handle)
	s.Store(letter("bad1", "o1", 1), letter("bad2", "o2", 1), letter("bad3", "o3", 1), letter("bad4", "o4", 1))
	s.Drain(4)
	ana := operator.New(s.Inbox, "ana@shop")
	var progress []idem.Replayed
	ana.Progress = func(sum idem.Replayed, of int) {
		progress = append(progress, sum)
		if of != 2 {
			t.Errorf("of %d, want 2", of)
		}
	}
	var failed []string
	ana.Failed = func(e idem.Event, err error) { failed = append(failed, e.ID+": "+err.Error()) }
	two := idem.Filter{IDs: []string{"bad1", "bad2"}}
	if r, err := replayed(t.Context(), "")(ana.PlanDryReplay(t.Context(), two)); counted(r) != counted(idem.Replayed{Failed: 2}) || err != nil {
		t.Error(r, err)
	}
	m.Fixed.Store(true)
	if r, err := replayed(t.Context(), "the order came late")(ana.PlanReplay(t.Context(), two)); counted(r) != counted(idem.Replayed{Done: 2}) || err != nil {
		t.Error(r, err)
	}
	s.WorkersElsewhere("notes")
	if n, err := acted(t.Context(), "")(ana.PlanRequeue(t.Context(), idem.Filter{Keys: []string{"o3"}})); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n, err := acted(t.Context(), "a test")(ana.PlanDiscard(t.Context(), idem.Filter{ReceivedUntil: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)})); n != 1 || err != nil {
		t.Error(n, err)
	}
	failure := errors.New("it is not there")
	err := ana.Record(t.Context(), "reveal", "body of bad4", "asked by the customer", func(context.Context) (string, error) { return "", failure })
	if !errors.Is(err, failure) {
		t.Error(err)
	}
	if diff := cmp.Diff([]idem.Replayed{{Failed: 1}, {Failed: 2}, {Done: 1}, {Done: 2}}, progress); diff != "" {
		t.Error("progress (-want +got):\n" + diff)
	}
	if diff := cmp.Diff([]string{"bad1: no such order", "bad2: no such order"}, failed); diff != "" {
		t.Error("failed (-want +got):\n" + diff)
	}
	want := []operator.Action{
		{Action: "dry replay", Filter: "states unhandled parked; ids bad1 bad2; 2 by row key", Events: 2, Result: "0 done, 2 failed, 0 without a handler; first failure: paid bad1"},
		{Action: "replay", Filter: "states unhandled parked; ids bad1 bad2; 2 by row key", Reason: "the order came late", Events: 2, Result: "2 done, 0 failed, 0 without a handler"},
		{Action: "requeue", Filter: "states unhandled parked; entities o3; 1 by row key", Events: 1, Result: "1 requeued"},
		{Action: "discard", Filter: "states unhandled parked; 1 by row key; received until 2030-01-02T03:04:05Z", Reason: "a test", Events: 1, Result: "1 discarded"},
		{Action: "reveal", Filter: "body of bad4", Reason: "asked by the customer", Result: "failed: it is not there"},
	}
	for n := range want {
		want[n].Actor, want[n].Source = "ana@shop", "notes"
	}
	trail := s.trail()
	if diff := cmp.Diff(want, trail, anyTime); diff != "" {
		t.Error("the trail (-want +got):\n" + diff)
	}
	events, err := operator.New(s.Inbox, "").ActionEvents(t.Context(), trail[1].ID)
	if diff := cmp.Diff([]string{"notes//bad1", "notes//bad2"}, events); diff != "" || err != nil {
		t.Error(err, "the events of the replay (-want +got):\n"+diff)
	}
}

// An action that was recorded and has no result is one whose process died: a
// record that came only after it would not be there.
func TestActionIsRecordedBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	before := func(context.Context) (string, error) {
		want := []operator.Action{{Actor: "ana", Action: "reveal", Source: "notes", Filter: "a body", Alive: true}}
		trail := s.trail()
		if diff := cmp.Diff(want, trail, anyTime); diff != "" {
			t.Error("the trail meanwhile (-want +got):\n" + diff)
		}
		if !trail[0].EndedAt.IsZero() {
			t.Error("it has ended before it began")
		}
		return "shown", nil
	}
	if err := operator.New(s.Inbox, "ana").Record(t.Context(), "reveal", "a body", "", before); err != nil {
		t.Fatal(err)
	}
	if trail := s.trail(); trail[0].Result != "shown" {
		t.Errorf("the trail = %+v", trail)
	}
}

func TestOperatorRefusesWhatCannotBeRecordedOrMeant(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(refuseBad)
	s.Store(letter("bad1", "o1", 1))
	s.Drain(1)
	for name, c := range map[string]struct {
		do  func() error
		say string
	}{
		"nobody": {func() error {
			_, err := acted(t.Context(), "")(operator.New(s.Inbox, "").PlanDiscard(t.Context(), idem.Filter{Types: []string{"paid"}}))
			return err
		}, "give New who it acts for"},
		"workers that are not there": {func() error {
			_, err := acted(t.Context(), "")(operator.New(s.First, "ana").PlanRequeue(t.Context(), idem.Filter{}))
			return err
		}, "no workers of this source are alive"},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.say)
		}
	}
	s.Exec(`drop table idem_audit cascade`)
	if n, err := acted(t.Context(), "")(operator.New(s.Inbox, "ana").PlanDiscard(t.Context(), idem.Filter{Types: []string{"paid"}})); n != 0 || err == nil {
		t.Errorf("Discard = %d, %v without a trail", n, err)
	}
	s.WantState("bad1", idem.StateParked)
	if trail := queryOne[bool](s, `select to_regclass('idem_audit') is null`); !trail {
		t.Error("the table is back")
	}
}

// Somebody waits for the end of an action in the trail, and a page for its answer.
func TestActionThatPanicsHasAnEndInTheTrail(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	err := operator.New(s.Inbox, "ana").Record(t.Context(), "reveal", "a body", "", func(context.Context) (string, error) { panic("no such field") })
	if err == nil || !strings.Contains(err.Error(), "no such field") {
		t.Error(err)
	}
	trail := s.trail()
	if len(trail) != 1 || trail[0].EndedAt.IsZero() || !strings.Contains(trail[0].Result, "failed: panic: no such field") || strings.Contains(trail[0].Result, "goroutine") {
		t.Errorf("the trail = %+v", trail)
	}
}

// Pages show 50 lines of the trail at a time, and events are listed elsewhere.
func TestLineOfTheTrailIsShortWhateverWasChosen(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	ids := make([]string, 200_000)
	for n := range ids {
		ids[n] = fmt.Sprintf("evt_%046d\u00e9", n)
	}
	reason := strings.Repeat("because ", 100_000)
	s.WorkersElsewhere("notes")
	if n, err := acted(t.Context(), reason)(operator.New(s.Inbox, "ana").PlanRequeue(t.Context(), idem.Filter{IDs: ids})); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	a := s.trail()[0]
	if n := len(a.Filter) + len(a.Reason); n > 5000 || !strings.HasPrefix(a.Filter, "states unhandled parked; ids evt_0000") || !strings.HasPrefix(a.Reason, "because because") {
		t.Errorf("a line of the trail has %d bytes: %.100q, %.100q", n, a.Filter, a.Reason)
	}
}

// An action whose change is not recorded has not happened.
func TestChangeAndItsRecordAreOneTransaction(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(refuseBad)
	s.Store(letter("bad1", "1", 0), letter("bad2", "2", 0))
	s.Drain(2)
	s.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'the disk is full'; end $$;
		create trigger refuse before update on idem_audit for each row when (new.result like '%carded' or new.result like '%queued') execute function refuse()`)
	ana := operator.New(s.Inbox, "ana")
	if n, err := acted(t.Context(), "noise")(ana.PlanDiscard(t.Context(), idem.Filter{IDs: []string{"bad1"}})); n != 0 || err == nil {
		t.Errorf("Discard = %d, %v, want an error", n, err)
	}
	if n, err := acted(t.Context(), "noise")(ana.PlanRequeue(t.Context(), idem.Filter{IDs: []string{"bad2"}})); n != 0 || err == nil {
		t.Errorf("Requeue = %d, %v, want an error", n, err)
	}
	s.WantState("bad1", idem.StateParked)
	s.WantState("bad2", idem.StateParked)
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
	s.On(refuseBad)
	s.Store(letter("bad2", "2", 0))
	s.Store(in("shop/1", letter("bad1", "1", 0)))
	s.Drain(2)
	shown, err := engineOf(s.Inbox).Choose(t.Context(), idem.Filter{Types: []string{"paid"}})
	want := idem.Filter{Types: []string{"paid"}, Events: []string{"notes//bad2", "notes/shop%2F1/bad1"}}
	if diff := cmp.Diff(want, shown); diff != "" || err != nil {
		t.Error(err, "Choose (-want +got):\n"+diff)
	}
	none, err := engineOf(s.Inbox).Choose(t.Context(), idem.Filter{Types: []string{"other"}})
	if err != nil || none.Events == nil {
		t.Errorf("Choose = %+v, %v, want an empty list, which chooses nothing", none, err)
	}
	s.WantDiscarded(none, "noise", 0)
}

// An action whose filter matches nothing is not one without a filter.
func TestActionThatChoosesNothingActsOnNothing(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(refuseBad)
	s.Store(letter("bad1", "o1", 0), letter("bad2", "o2", 0))
	s.Drain(2)
	want := s.Contents()
	ana := operator.New(s.Inbox, "ana")
	ana.RequeueWithoutWorkers = true
	nothing := idem.Filter{Types: []string{"no such type"}}
	if shown, err := engineOf(s.Inbox).Choose(t.Context(), nothing); err != nil || shown.Events == nil || len(shown.Events) != 0 {
		t.Errorf("Choose = %+v, %v, want an empty list", shown, err)
	}
	for action, do := range map[string]func() (int64, error){
		"discard": func() (int64, error) { return acted(t.Context(), "")(ana.PlanDiscard(t.Context(), nothing)) },
		"requeue": func() (int64, error) { return acted(t.Context(), "")(ana.PlanRequeue(t.Context(), nothing)) },
		"replay": func() (int64, error) {
			sum, err := replayed(t.Context(), "")(ana.PlanReplay(t.Context(), nothing))
			return int64(sum.Done + sum.Failed + sum.Unhandled), err
		},
	} {
		if n, err := do(); n != 0 || err != nil {
			t.Errorf("%s: %d events, %v, want none", action, n, err)
		}
	}
	s.WantContents(want)
}

// trail is the audit trail without what differs from run to run, oldest first.
func (s *app) trail() (lines []operator.Action) {
	s.Helper()
	for before := int64(0); ; {
		page, err := operator.New(s.Inbox, "").Actions(s.Context(), before, 2)
		if err != nil {
			s.Fatal(err)
		}
		if len(page) == 0 {
			return lines
		}
		before = page[len(page)-1].ID
		for _, a := range page {
			if a.Result != "" && (a.EndedAt.Before(a.At) || time.Since(a.At) > time.Hour) {
				s.Errorf("an action began at %s and ended at %s", a.At, a.EndedAt)
			}
			lines = append([]operator.Action{a}, lines...)
		}
	}
}

var anyTime = cmpopts.IgnoreFields(operator.Action{}, "ID", "At", "EndedAt")

// swap has all that is parked leave that state by hand, and parks as many others, a payment among them.
func (s *app) swap(n int) {
	s.Helper()
	s.Exec(`update idem_events set state = 'pending' where state = 'parked';
		update idem_payloads p set due_at = now(), lane = event`)
	for i := range n {
		s.Exec(fmt.Sprintf(`insert into idem_events (event, type, key, state) values ('notes//payment%d', 'paid', '', 'parked')`, i))
	}
	s.Exec(`insert into idem_payloads (event, source, received_at, body)
		select event, 'notes', received_at, '{}' from idem_events where state = 'parked'`)
}

// wantTrail checks how many events the latest action is recorded with, and that its result ends so.
func (s *app) wantTrail(events int, result string) {
	s.Helper()
	trail := s.trail()
	a := trail[len(trail)-1]
	keys, err := operator.New(s.Inbox, "").ActionEvents(s.Context(), a.ID)
	if err != nil || len(keys) != events || a.Events != int64(events) {
		s.Errorf("the trail has the events %q, %v, want %d", keys, err, events)
	}
	if got := a.Result; !strings.Contains(got, result) {
		s.Errorf("the trail has the result %q, want %q in it", got, result)
	}
}

// A copy by logical replication has the rows of the trail, and no sequence goes on where the original's was.
func TestActionsAreNumberedAfterThoseOfTheTrailAlsoTwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			}))
			const begin = `insert into idem_audit (id, actor, action, source, filter, reason, events) values ($1, 'bob', 'look', 'notes', '', '', '{}')`
			if _, err := s.Pool.Exec(t.Context(), begin, 41); err != nil {
				t.Fatal(err)
			}
			another, err := s.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer another.Rollback(context.Background())
			if _, err := another.Exec(t.Context(), begin, 42); err != nil {
				t.Fatal(err)
			}
			recorded := make(chan error, 1)
			go func() {
				recorded <- operator.New(s.First, "ana").Record(context.Background(), "look", "", "", func(context.Context) (string, error) { return "", nil })
			}()
			s.Until(blocked)
			if err := another.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-recorded; err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"41 bob", "42 bob", "43 ana"}, queryOne[[]string](s, `select array_agg(id || ' ' || actor order by id) from idem_audit`)); diff != "" {
				t.Error("the trail (-want +got):\n" + diff)
			}
		})
	}
}
