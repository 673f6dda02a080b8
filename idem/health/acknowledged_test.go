package health_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestParkedEventIsRedUntilItIsAcknowledgedAndTheNextIsRedAgain(t *testing.T) {
	t.Parallel()
	s := testkit.NewTill(t)
	ana := operator.New(s.First, "ana@shop")
	acknowledges := func(f idem.Filter, want int64) {
		t.Helper()
		if n, err := testkit.Acted(t.Context(), "the shop knows")(ana.PlanAcknowledge(t.Context(), f)); n != want || err != nil {
			t.Errorf("Acknowledge = %d, %v, want %d", n, err, want)
		}
	}
	s.OpenInbox()
	s.Inbox.MaxAttempts = 1
	s.Fails("first", "second")
	s.Store(testkit.At(1, "first", "paid", "o1"))
	s.Drain(1)
	s.WantHealth("parked", s.NewHealth(s.First), "parked", "1 event is parked, until a person acts: first first, paid")
	acknowledges(idem.Filter{IDs: []string{"first"}}, 1)
	s.WantHealth("acknowledged", s.NewHealth(s.First), "", "")
	s.WantState("first", idem.StateParked)

	s.Store(testkit.At(2, "second", "refunded", "o1")) // waits for the first
	s.WantHealth("another waits for it", s.NewHealth(s.First), "standing", "1 event waits for a parked one: the first for first, of o1")
	acknowledges(idem.Filter{IDs: []string{"first", "second"}}, 1) // the second was never tried
	s.Fails("second")
	s.WantReplayed(idem.Filter{IDs: []string{"first"}}, idem.Replayed{Done: 1})
	s.Drain(1)
	s.WantHealth("and failed in its turn", s.NewHealth(s.First), "parked", "first second, refunded")

	two := s.NewHealth(s.First)
	two.MaxParked = 2
	s.WantHealth("one is allowed", two, "", "")
	two = s.NewHealth(s.First)
	two.MaxParked = 0
	s.WantHealth("it does not look", two, "", "")

	actions, err := ana.Actions(t.Context(), 0, 1)
	if err != nil || len(actions) != 1 {
		t.Fatal(actions, err)
	}
	got := fmt.Sprintf("%s %s: %s, %s, %d", actions[0].Actor, actions[0].Action, actions[0].Reason, actions[0].Result, actions[0].Events)
	if diff := cmp.Diff("ana@shop acknowledge: the shop knows, 1 acknowledged, 1", got); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
	if _, err := testkit.Acted(t.Context(), "x")(operator.New(s.First, "").PlanAcknowledge(t.Context(), idem.Filter{})); err == nil {
		t.Error("an operator without a name acknowledges")
	}

	second := idem.Filter{IDs: []string{"second"}}
	for _, again := range []struct {
		how  string
		fail func()
	}{
		{"a replay", func() { s.WantReplayed(second, idem.Replayed{Failed: 1}) }},
		{"the provider delivers it", func() { s.Store(testkit.At(2, "second", "refunded", "o1")); s.Drain(1) }},
		{"workers", func() {
			if n, err := s.Inbox.Requeue(t.Context(), second); n != 1 || err != nil {
				t.Errorf("Requeue = %d, %v", n, err)
			}
			s.Drain(1)
		}},
		{"a replay of a body that does not decode", func() {
			s.Exec(`update idem_payloads set body = '{"id":5}'`)
			s.WantReplayed(second, idem.Replayed{Failed: 1})
		}},
	} {
		acknowledges(second, 1)
		s.WantHealth("before "+again.how, s.NewHealth(s.First), "", "")
		again.fail()
		s.WantHealth("after "+again.how, s.NewHealth(s.First), "parked", "first second, refunded")
	}
	acknowledges(second, 1)
	s.WantHealth("acknowledged once more", s.NewHealth(s.First), "", "")
}

// It is tried again by itself, for hours.
func TestFailingEventIsRedUntilItIsAcknowledgedAndAgainOnceItIsParked(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(func(context.Context, pgx.Tx, *testkit.Note) error { return errors.New("a mistake") })
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Inbox.MaxAttempts = 3
	ana, e1 := operator.New(s.Inbox, "ana@shop"), idem.Filter{IDs: []string{"e1"}}
	does := func(what string, plan func(context.Context, idem.Filter) (*operator.Plan, error), f idem.Filter, want int64) {
		t.Helper()
		if n, err := testkit.Acted(t.Context(), "the bank is away")(plan(t.Context(), f)); n != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", what, n, err, want)
		}
	}
	again := func(reason, check, says string) {
		t.Helper()
		s.Exec(`update idem_payloads set due_at = now(), received_at = now() - interval '11 minutes' where event like '%/e1'`)
		s.Drain(1)
		s.WantHealth(reason, s.NewHealth(s.Inbox), check, says)
	}
	s.Store(testkit.Letter("e1", "o1", 0))
	does("Acknowledge of what was never tried", ana.PlanAcknowledge, e1, 0)
	again("it fails", "failing", "1 event fails")
	does("Acknowledge", ana.PlanAcknowledge, idem.Filter{}, 1)
	s.WantHealth("acknowledged", s.NewHealth(s.Inbox), "", "")
	if l, ok, err := ana.Lookup(t.Context(), "", "e1"); !ok || err != nil || l.AcknowledgedAt.IsZero() || l.Acknowledged.Actor != "ana@shop" || l.Acknowledged.Reason != "the bank is away" {
		t.Errorf("Lookup says it is acknowledged by %q for %q at %s, %v, %v", l.Acknowledged.Actor, l.Acknowledged.Reason, l.AcknowledgedAt, ok, err)
	}
	again("it fails again, and is tried again", "", "")
	if stats, err := ana.State(t.Context()); stats.Acknowledged != 1 || stats.FailingAcknowledged != 1 || stats.Failing.Events != 0 || err != nil {
		t.Errorf("State has %d acknowledged, %d of those fail, and %d others, %v, want 1 that does", stats.Acknowledged, stats.FailingAcknowledged, stats.Failing.Events, err)
	}
	does("Unacknowledge", ana.PlanUnacknowledge, e1, 1)
	does("Unacknowledge of what is not acknowledged", ana.PlanUnacknowledge, e1, 0)
	s.WantHealth("taken back", s.NewHealth(s.Inbox), "failing", "1 event fails")
	does("Acknowledge once more", ana.PlanAcknowledge, e1, 1)
	again("nobody tries it any more", "parked", "1 event is parked, until a person acts: first e1, paid")

	s.Store(testkit.Letter("e2", "o1", 0))
	does("Acknowledge of the parked one", ana.PlanAcknowledge, e1, 1)
	s.WantHealth("what waited behind it is known, too", s.NewHealth(s.Inbox), "", "")
	s.Store(testkit.Letter("e3", "o1", 0))
	s.WantHealth("another comes to wait", s.NewHealth(s.Inbox), "standing", "2 events wait for parked ones: the first for e1, of o1")
	does("Unacknowledge the parked one", ana.PlanUnacknowledge, e1, 1)
	s.WantHealth("taken back", s.NewHealth(s.Inbox), "standing and parked", "1 event is parked")

	does("Acknowledge before a requeue", ana.PlanAcknowledge, e1, 1)
	if n, err := s.Inbox.Requeue(t.Context(), e1); n != 1 || err != nil {
		t.Errorf("Requeue = %d, %v", n, err)
	}
	again("somebody had it tried again, and it fails", "failing", "1 event fails")

	s.Inbox.MaxAttempts = 1
	again("nobody tries it any more", "standing and parked", "1 event is parked")
	s.Inbox.MaxAttempts = 3
	does("Acknowledge before the provider delivers it again", ana.PlanAcknowledge, e1, 1)
	s.Store(testkit.Letter("e1", "o1", 0))
	again("the provider had it tried again, and it fails", "failing", "1 event fails")
}
