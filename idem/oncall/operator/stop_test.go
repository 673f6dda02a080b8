package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestStoppedReplayEndsAfterItsEventAndAnotherDoesTheRestOnce(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	g := newGated("bad2")
	action, ended := replaying(s, g, "e1", "bad2", "e3", "e4")
	bob := operator.New(s.First, "bob")
	if err := bob.Stop(t.Context(), action, "wrong handler"); err != nil {
		t.Fatal(err)
	}
	g.goOn <- struct{}{}
	if err := <-ended; !errors.Is(err, operator.ErrStopped) || !strings.Contains(err.Error(), "stopped by bob") {
		t.Errorf("Replay = %v, want that bob has stopped it", err)
	}
	g.wantTries(t, map[string]int{"e1": 1, "bad2": 1})
	wantOutcomes(s, action, "notes//bad2 failed", "notes//e3 ", "notes//e4 ", "notes//e1 done")
	if err := bob.Stop(t.Context(), action, ""); !errors.Is(err, operator.ErrNotRunning) {
		t.Errorf("Stop of what has ended = %v", err)
	}

	if _, err := testkit.Replayed(t.Context(), "the right one")(bob.PlanReplay(t.Context(), idem.Filter{IDs: []string{"e1", "e3", "e4"}})); err != nil {
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
	s := testkit.NewShop(t)
	g := newGated("e1")
	action, ended := replaying(s, g, "e1", "e2")
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
	if n := testkit.QueryOne[int](t, s.Pool, `select count(*) from idem_audit where action = 'stop' and ended_at is not null`); n != 1 {
		t.Errorf("the trail has %d stops, want 1", n)
	}
	if err := operator.New(s.First, "bob").Stop(t.Context(), 99, ""); !errors.Is(err, operator.ErrNoAction) {
		t.Errorf("Stop of no action = %v", err)
	}
	if err := operator.New(s.First, "").Stop(t.Context(), action, ""); err == nil {
		t.Error("nobody by name has stopped an action")
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

func (g *gated) handle(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
	g.mu.Lock()
	g.tries[n.ID]++
	first := g.tries[n.ID] == 1
	g.mu.Unlock()
	if n.ID == g.at && first {
		close(g.inside)
		<-g.goOn
	}
	return testkit.RefuseBad(ctx, tx, n)
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
func replaying(s *testkit.Shop, g *gated, ids ...string) (action int64, ended <-chan error) {
	s.Helper()
	for _, id := range ids {
		s.WantAnswer(fmt.Sprintf(`{"id":%q,"type":"paid","order":"order of %s"}`, id, id), 200) // unhandled
	}
	s.Deploy(func(n *testkit.Source) { idem.Handle(&n.Routes, "paid", g.handle) })
	failed := make(chan error, 1)
	go func() {
		_, err := testkit.Replayed(context.WithoutCancel(s.Context()), "handler deployed")(operator.New(s.First, "ana").PlanReplay(context.WithoutCancel(s.Context()), idem.Filter{}))
		failed <- err
	}()
	<-g.inside
	return testkit.QueryOne[int64](s, s.Pool, `select max(id) from idem_audit`), failed
}

// wantOutcomes checks what an action has done to its events.
func wantOutcomes(s *testkit.Shop, action int64, want ...string) {
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
