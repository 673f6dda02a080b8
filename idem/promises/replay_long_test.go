//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Nothing is skipped because a newer event was handled: so a person must be able to see it.
func TestReplayNamesTheEventsThatItRunsBehindLaterOnes(t *testing.T) {
	t.Parallel()
	const late = "late"
	e := func(id, eventType, key string, second int) idem.Event {
		return idem.Event{
			Source: "notes", ID: id, Type: eventType, Key: key, OccurredAt: time.Unix(1_700_000_000+int64(second), 0),
			Payload: fmt.Appendf(nil, `{"id":%q,"type":%q,"order":%q}`, id, eventType, key),
		}
	}
	timeless := func(e idem.Event) idem.Event { e.OccurredAt = time.Time{}; return e }
	for _, c := range []struct {
		why    string
		events []idem.Event // in the order of arrival: the one with the id "late" fails, and lets others pass
		want   []string
	}{
		{"a refund was booked before the payment", []idem.Event{e(late, "paid", "o1", 1), e("r", "refunded", "o1", 2)}, []string{"late (paid) ran behind r (refunded), which was done before it"}},
		{"it came after the refund, and is older", []idem.Event{e("r", "refunded", "o1", 2), e(late, "paid", "o1", 1)}, []string{"late (paid) ran behind r (refunded), which was done before it"}},
		{"the latest is named, the others are counted", []idem.Event{e(late, "paid", "o1", 1), e("r", "refunded", "o1", 3), e("p", "paid", "o1", 2)}, []string{"late (paid) ran behind r (refunded), which was done before it, as were 1 others"}},
		{"without the provider's time, arrival counts", []idem.Event{timeless(e(late, "paid", "o1", 1)), timeless(e("r", "refunded", "o1", 1))}, []string{"late (paid) ran behind r (refunded), which was done before it"}},
		{"the one that was done is earlier", []idem.Event{e("p", "paid", "o1", 1), e(late, "refunded", "o1", 2)}, nil},
		{"it arrived later, and is earlier", []idem.Event{e(late, "refunded", "o1", 2), e("p", "paid", "o1", 1)}, nil},
		{"it is of another order", []idem.Event{e(late, "paid", "o1", 1), e("r", "refunded", "o2", 2)}, nil},
		{"it is of another account", []idem.Event{e(late, "paid", "o1", 1), in("shop", e("r", "refunded", "o1", 2))}, nil},
		{"events without an entity have no order", []idem.Event{e(late, "paid", "", 1), e("r", "refunded", "", 2)}, nil},
		{"the later one has failed, too, and runs behind it", []idem.Event{e(late, "paid", "o1", 1), e("late 2", "refunded", "o1", 2)}, nil},
	} {
		for _, mode := range []string{"inline", "inbox"} {
			t.Run(mode+", "+c.why, func(t *testing.T) {
				t.Parallel()
				s := newApp(t)
				broken := true
				handle := func(_ context.Context, _ pgx.Tx, n *note) error {
					if broken && strings.HasPrefix(n.ID, late) {
						return idem.NoRetry(errors.New("no such order"))
					}
					return nil
				}
				s.On(handle)
				idem.Handle(&s.Notes.Routes, "refunded", handle)
				s.First.PassParked = true
				receiver, accept := idem.Receiver(s.First), s.First.Accept
				if mode == "inbox" {
					s.openInbox()
					s.Inbox.PassParked = true
					receiver, accept = s.Inbox, s.Inbox.Accept
				}
				for _, e := range c.events {
					if _, err := accept(t.Context(), e); err != nil {
						t.Fatal(err)
					}
					if mode == "inbox" {
						s.Drain()
					}
				}
				broken = false
				ana := operator.New(receiver, "ana@shop")
				common := ana.Inbox
				for _, way := range []struct {
					name string
					do   func() (idem.Replayed, error)
				}{
					{"DryReplay", func() (idem.Replayed, error) { return common.DryReplay(t.Context(), idem.Filter{}) }},
					{"PlanReplay", func() (idem.Replayed, error) {
						return replayed(t.Context(), "the order is there")(ana.PlanReplay(t.Context(), idem.Filter{}))
					}},
				} {
					sum, err := way.do()
					if err != nil || sum.Done == 0 {
						t.Errorf("%s = %+v, %v", way.name, sum, err)
					}
					var got []string
					for _, o := range sum.Overtaken {
						got = append(got, o.String())
					}
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", way.name, diff)
					}
				}
				actions, err := ana.Actions(t.Context(), 0, 1)
				if err != nil || len(actions) != 1 {
					t.Fatal(actions, err)
				}
				for _, line := range c.want {
					if !strings.Contains(actions[0].Result, line) {
						t.Errorf("the trail says %q", actions[0].Result)
					}
				}
			})
		}
	}
}
