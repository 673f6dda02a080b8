package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// An action that was recorded and has no result is one whose process died: a
// record that came only after it would not be there.
func TestActionIsRecordedBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	before := func(context.Context) (string, error) {
		want := []operator.Action{{Actor: "ana", Action: "reveal", Source: "notes", Filter: "a body", Alive: true}}
		trail := s.Trail()
		if diff := cmp.Diff(want, trail, testkit.AnyTime); diff != "" {
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
	if trail := s.Trail(); trail[0].Result != "shown" {
		t.Errorf("the trail = %+v", trail)
	}
}

func TestAnActionThatFailsIsInTheTrailWithItsError(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	failure := errors.New("it is not there")
	err := operator.New(s.Inbox, "ana").Record(t.Context(), "reveal", "body of bad4", "asked by the customer", func(context.Context) (string, error) { return "", failure })
	if !errors.Is(err, failure) {
		t.Error(err)
	}
	want := []operator.Action{{Actor: "ana", Action: "reveal", Source: "notes", Filter: "body of bad4", Reason: "asked by the customer", Result: "failed: it is not there"}}
	if diff := cmp.Diff(want, s.Trail(), testkit.AnyTime); diff != "" {
		t.Error("the trail (-want +got):\n" + diff)
	}
}

// Somebody waits for the end of an action in the trail, and a page for its answer.
func TestActionThatPanicsHasAnEndInTheTrail(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	err := operator.New(s.Inbox, "ana").Record(t.Context(), "reveal", "a body", "", func(context.Context) (string, error) { panic("no such field") })
	if err == nil || !strings.Contains(err.Error(), "no such field") {
		t.Error(err)
	}
	trail := s.Trail()
	if len(trail) != 1 || trail[0].EndedAt.IsZero() || !strings.Contains(trail[0].Result, "failed: panic: no such field") || strings.Contains(trail[0].Result, "goroutine") {
		t.Errorf("the trail = %+v", trail)
	}
}

// Pages show 50 lines of the trail at a time, and events are listed elsewhere.
func TestLineOfTheTrailIsShortWhateverWasChosen(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	ids := make([]string, 200_000)
	for n := range ids {
		ids[n] = fmt.Sprintf("evt_%046d\u00e9", n)
	}
	reason := strings.Repeat("because ", 100_000)
	s.WorkersElsewhere("notes")
	if n, err := testkit.Acted(t.Context(), reason)(operator.New(s.Inbox, "ana").PlanRequeue(t.Context(), idem.Filter{IDs: ids})); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	a := s.Trail()[0]
	if n := len(a.Filter) + len(a.Reason); n > 5000 || !strings.HasPrefix(a.Filter, "states unhandled parked; ids evt_0000") || !strings.HasPrefix(a.Reason, "because because") {
		t.Errorf("a line of the trail has %d bytes: %.100q, %.100q", n, a.Filter, a.Reason)
	}
}

// A copy by logical replication has the rows of the trail, and no sequence goes on where the original's was.
func TestActionsAreNumberedAfterThoseOfTheTrailAlsoTwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := testkit.OpenShop(t, testkit.OpenPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
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
			s.Until(testkit.Blocked)
			if err := another.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-recorded; err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"41 bob", "42 bob", "43 ana"}, testkit.QueryOne[[]string](t, s.Pool, `select array_agg(id || ' ' || actor order by id) from idem_audit`)); diff != "" {
				t.Error("the trail (-want +got):\n" + diff)
			}
		})
	}
}

func TestAnEventHasTheActionsThatTouchedItAndWhatTheyDid(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.RefuseBad)
	s.Store(testkit.Letter("bad1", "o1", 1), testkit.Letter("bad2", "o2", 1), testkit.Letter("e3", "o2", 2))
	s.Drain(2)
	s.WorkersElsewhere("notes")
	ana := operator.New(s.Inbox, "ana")
	one, two := idem.Filter{IDs: []string{"bad1"}}, idem.Filter{IDs: []string{"bad2"}}
	for _, plan := range []planner{on(replay, one), on(dryReplay, idem.Filter{}), on(acknowledge, one), on(requeue, one), on(discard, two), on(erase, two)} {
		if _, err := testkit.Acted(t.Context(), "a test")(plan(ana, t.Context())); err != nil {
			t.Error(err)
		}
	}
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
	if n := testkit.QueryOne[int](t, s.Pool, `select count(*) from idem_audit_events`); n != 0 {
		t.Errorf("%d outcomes are left of actions that are forgotten", n)
	}
}

func TestTrailTellsHowFarAReplayHasCome(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	for _, id := range []string{"e1", "e2", "e3"} {
		s.WantAnswer(testkit.Paid(id), 200) // unhandled
	}
	var meanwhile []operator.Action
	s.Deploy(func(n *testkit.Source) {
		idem.Handle(&n.Routes, "paid", func(ctx context.Context, _ pgx.Tx, n *testkit.Note) (err error) {
			if n.ID == "e2" {
				meanwhile, err = operator.New(s.First, "").Actions(ctx, 0, 10)
			}
			return err
		})
	})
	if _, err := testkit.Replayed(t.Context(), "handler deployed")(operator.New(s.First, "ana").PlanReplay(t.Context(), idem.Filter{})); err != nil {
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

func TestAReplayTellsOfEachEventAndEachFailureAsItComes(t *testing.T) {
	t.Parallel()
	s := newNight(t)
	for _, plan := range []func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error){dryReplay, replay} {
		var told []string
		ana := operator.New(s.Inbox, "ana")
		ana.Progress = func(sum idem.Replayed, of int) {
			told = append(told, fmt.Sprintf("%d done, %d failed of %d", sum.Done, sum.Failed, of))
		}
		ana.Failed = func(e idem.Event, err error) { told = append(told, e.ID+": "+err.Error()) }
		if _, err := testkit.Replayed(t.Context(), "")(plan(ana, t.Context(), idem.Filter{IDs: []string{"bad3", "late1"}})); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"1 done, 0 failed of 2", "bad3: no such order", "1 done, 1 failed of 2"}, told); diff != "" {
			t.Error("told (-want +got):\n" + diff)
		}
	}
}
