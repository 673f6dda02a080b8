//go:build long

package promises_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestActionIsBoundToTheEventsThatWereShown(t *testing.T) {
	t.Parallel()
	for action, plan := range map[string]func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error){
		"discard": (*operator.Operator).PlanDiscard, "requeue": (*operator.Operator).PlanRequeue,
		"replay": (*operator.Operator).PlanReplay, "dry replay": (*operator.Operator).PlanDryReplay,
	} {
		t.Run(action+" of seven that became seven others", func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.On(refuseBad)
			for n := range 7 {
				s.Store(letter(fmt.Sprintf("bad%d", n), fmt.Sprint(n), 0))
			}
			s.Drain(7)
			ana := operator.New(s.Inbox, "ana")
			ana.RequeueWithoutWorkers = true
			shown, err := plan(ana, t.Context(), idem.Filter{States: []idem.State{idem.StateParked}})
			if err != nil || shown.Count != 7 {
				t.Fatalf("the plan is %+v, %v, want seven events", shown, err)
			}
			s.swap(7)
			if r, err := shown.Do(t.Context(), "noise"); r.Acted != 0 || err != nil {
				t.Errorf("it acted on %d events, %v, want none", r.Acted, err)
			}
			if n := queryOne[int](s, `select count(*) from idem_events where state = 'parked' and event like '%payment%' and attempts = 0`); n != 7 {
				t.Errorf("%d of the other seven are as they were", n)
			}
			s.wantTrail(0, "; 7 left alone: done, in another state by now, or being processed")
		})
		t.Run(action+" of some that left", func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.On(refuseBad)
			s.Store(letter("bad1", "1", 0), letter("bad2", "2", 0), letter("bad3", "3", 0))
			s.Drain(3)
			ana := operator.New(s.Inbox, "ana")
			ana.RequeueWithoutWorkers = true
			shown, err := plan(ana, t.Context(), idem.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			s.WantReplayed(idem.Filter{IDs: []string{"bad3"}}, idem.Replayed{Failed: 1}) // it stays
			s.WantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "by another", 1)
			s.Store(letter("bad4", "4", 0))
			s.Drain(1)
			if r, err := shown.Do(t.Context(), "noise"); r.Acted != 2 || err != nil {
				t.Errorf("it acted on %d events, %v, want 2", r.Acted, err)
			}
			s.WantState("bad4", idem.StateParked)
			s.wantTrail(2, "; 1 left alone: done, in another state by now, or being processed")
		})
	}
}
