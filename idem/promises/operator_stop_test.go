package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestStoppedReplayEndsAfterItsEventAndAnotherDoesTheRestOnce(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	g := newGated("bad2")
	action, ended := s.replaying(g, "e1", "bad2", "e3", "e4")
	bob := operator.New(s.First, "bob")
	if err := bob.Stop(t.Context(), action, "wrong handler"); err != nil {
		t.Fatal(err)
	}
	g.goOn <- struct{}{}
	if err := <-ended; !errors.Is(err, operator.ErrStopped) || !strings.Contains(err.Error(), "stopped by bob") {
		t.Errorf("Replay = %v, want that bob has stopped it", err)
	}
	g.wantTries(t, map[string]int{"e1": 1, "bad2": 1})
	s.wantOutcomes(action, "notes//bad2 failed", "notes//e3 ", "notes//e4 ", "notes//e1 done")
	if err := bob.Stop(t.Context(), action, ""); !errors.Is(err, operator.ErrNotRunning) {
		t.Errorf("Stop of what has ended = %v", err)
	}

	if _, err := replayed(t.Context(), "the right one")(bob.PlanReplay(t.Context(), idem.Filter{IDs: []string{"e1", "e3", "e4"}})); err != nil {
		t.Fatal(err)
	}
	g.wantTries(t, map[string]int{"e1": 1, "bad2": 1, "e3": 1, "e4": 1})
	s.WantEffects(3)
	trail, err := bob.Actions(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range trail {
		got = append(got, fmt.Sprintf("%d %s %s (%s) %q: %s", a.ID, a.Actor, a.Action, a.Filter, a.StoppedBy, a.Result))
	}
	want := []string{
		`3 bob replay (states unhandled parked; ids e1 e3 e4; 2 by row key) "": 2 done, 0 failed, 0 without a handler`,
		`2 bob stop (action 1) "": asked to end`,
		`1 ana replay (states unhandled parked; 4 by row key) "bob": 1 done, 1 failed, 0 without a handler; first failure: paid bad2; stopped by bob`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("the trail (-want +got):\n" + diff)
	}
}

func TestOfTwoWhoStopAnActionOneIsRecorded(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	g := newGated("e1")
	action, ended := s.replaying(g, "e1", "e2")
	errs := make(chan error)
	for _, name := range []string{"bob", "eve"} {
		go func() { errs <- operator.New(s.First, name).Stop(t.Context(), action, "") }()
	}
	stopped := 0
	for range 2 {
		if err := <-errs; err == nil {
			stopped++
		} else if !errors.Is(err, operator.ErrStopped) {
			t.Errorf("Stop = %v, want that another has stopped it", err)
		}
	}
	close(g.goOn)
	if err := <-ended; !errors.Is(err, operator.ErrStopped) || stopped != 1 {
		t.Errorf("Replay = %v after %d of two stops", err, stopped)
	}
	g.wantTries(t, map[string]int{"e1": 1})
	if n := queryOne[int](s, `select count(*) from idem_audit where action = 'stop' and ended_at is not null`); n != 1 {
		t.Errorf("the trail has %d stops, want 1", n)
	}
	if err := operator.New(s.First, "bob").Stop(t.Context(), 99, ""); !errors.Is(err, operator.ErrNoAction) {
		t.Errorf("Stop of no action = %v", err)
	}
	if err := operator.New(s.First, "").Stop(t.Context(), action, ""); err == nil {
		t.Error("nobody by name has stopped an action")
	}
}

func TestAnEventHasTheActionsThatTouchedItAndWhatTheyDid(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(refuseBad)
	s.Store(letter("bad1", "o1", 1), letter("bad2", "o2", 1), letter("e3", "o2", 2))
	s.Drain(2)
	s.WorkersElsewhere("notes")
	ana := operator.New(s.Inbox, "ana")
	one, two := idem.Filter{IDs: []string{"bad1"}}, idem.Filter{IDs: []string{"bad2"}}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	_, err := replayed(t.Context(), "")(ana.PlanReplay(t.Context(), one))
	do(err)
	_, err = replayed(t.Context(), "")(ana.PlanDryReplay(t.Context(), idem.Filter{}))
	do(err)
	_, err = acted(t.Context(), "")(ana.PlanAcknowledge(t.Context(), one))
	do(err)
	_, err = acted(t.Context(), "")(ana.PlanRequeue(t.Context(), one))
	do(err)
	_, err = acted(t.Context(), "a test")(ana.PlanDiscard(t.Context(), two))
	do(err)
	_, err = acted(t.Context(), "request 1")(ana.PlanErase(t.Context(), two))
	do(err)
	for id, want := range map[string][]string{
		"bad1": {"requeue requeued", "acknowledge acknowledged", "dry replay failed", "replay failed"},
		"bad2": {"erase erased", "discard discarded", "dry replay failed"},
		"e3":   nil,
	} {
		touched, err := ana.ActionsOn(t.Context(), "", id, 10)
		var got []string
		for _, a := range touched {
			if a.DoneAt.Before(a.At) {
				t.Errorf("%s was done before it began", a.Action.Action)
			}
			got = append(got, a.Action.Action+" "+a.Outcome)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("the actions on %s, %v (-want +got):\n%s", id, err, diff)
		}
	}
	s.Exec(`delete from idem_audit`)
	if n := queryOne[int](s, `select count(*) from idem_audit_events`); n != 0 {
		t.Errorf("%d outcomes are left of actions that are forgotten", n)
	}
}

func TestTrailTellsHowFarAReplayHasCome(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for _, id := range []string{"e1", "e2", "e3"} {
		s.WantAnswer(paid(id), 200) // unhandled
	}
	var meanwhile []operator.Action
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "paid", func(ctx context.Context, _ pgx.Tx, n *note) (err error) {
			if n.ID == "e2" {
				meanwhile, err = operator.New(s.First, "").Actions(ctx, 0, 10)
			}
			return err
		})
	})
	if _, err := replayed(t.Context(), "handler deployed")(operator.New(s.First, "ana").PlanReplay(t.Context(), idem.Filter{})); err != nil {
		t.Fatal(err)
	}
	ended, err := operator.New(s.First, "").Actions(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := operator.Action{
		Actor: "ana", Action: "replay", Source: "notes", Filter: "states unhandled parked; 3 by row key", Reason: "handler deployed",
		Events: 3, Result: "1 of 3: 1 done, 0 failed, 0 without a handler", Alive: true,
	}
	ignore := cmpopts.IgnoreFields(operator.Action{}, "ID", "At")
	if diff := cmp.Diff([]operator.Action{want}, meanwhile, ignore); diff != "" {
		t.Error("during the second event the trail has (-want +got):\n" + diff)
	}
	want.Result, want.Alive = "3 done, 0 failed, 0 without a handler", false
	if diff := cmp.Diff([]operator.Action{want}, ended, ignore, cmpopts.IgnoreFields(operator.Action{}, "EndedAt")); diff != "" || ended[0].EndedAt.IsZero() {
		t.Errorf("after it, ended %s, the trail has (-want +got):\n%s", ended[0].EndedAt, diff)
	}
}

func newGated(at string) *gated {
	return &gated{at: at, inside: make(chan struct{}), goOn: make(chan struct{}), tries: map[string]int{}}
}

// gated is a handler that waits in one event, and counts the attempts at each.
type gated struct {
	at     string        // the id of that event
	inside chan struct{} // closed when it is there
	goOn   chan struct{} // closed to let it out

	mu    sync.Mutex
	tries map[string]int
}

func (g *gated) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	g.mu.Lock()
	g.tries[n.ID]++
	first := g.tries[n.ID] == 1
	g.mu.Unlock()
	if n.ID == g.at && first {
		close(g.inside)
		<-g.goOn
	}
	return refuseBad(ctx, tx, n)
}

func (g *gated) wantTries(t *testing.T, want map[string]int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if diff := cmp.Diff(want, g.tries); diff != "" {
		t.Error("attempts by event (-want +got):\n" + diff)
	}
}

// replaying is a replay by ana that waits in an event.
func (s *app) replaying(g *gated, ids ...string) (action int64, ended <-chan error) {
	s.Helper()
	for _, id := range ids {
		s.WantAnswer(fmt.Sprintf(`{"id":%q,"type":"paid","order":"order of %s"}`, id, id), 200) // unhandled
	}
	s.Deploy(func(n *notes) { idem.Handle(&n.Routes, "paid", g.handle) })
	failed := make(chan error, 1)
	go func() {
		_, err := replayed(context.WithoutCancel(s.Context()), "handler deployed")(operator.New(s.First, "ana").PlanReplay(context.WithoutCancel(s.Context()), idem.Filter{}))
		failed <- err
	}()
	<-g.inside
	return queryOne[int64](s, `select max(id) from idem_audit`), failed
}

// wantOutcomes checks what an action has done to its events.
func (s *app) wantOutcomes(action int64, want ...string) {
	s.Helper()
	all, err := operator.New(s.First, "").Outcomes(s.Context(), action, 100)
	var got []string
	for _, o := range all {
		got = append(got, o.Event+" "+o.Result)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		s.Errorf("the outcomes of action %d, %v (-want +got):\n%s", action, err, diff)
	}
}
