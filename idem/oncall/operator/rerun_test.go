package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// What changes between the plan and the attempt is the attempt's.
func TestARerunMakesOneAttemptAndTheEventStaysDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason  string
		handler func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error // in the attempt
		before  func(s *testkit.Shop)
		says    string // "" is nothing
		effects int    // beside the first
		result  string
	}{
		{"it passes", nil, nil, "", 1, "1 done"},
		{"it fails", func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
			return errors.Join(testkit.Pay(ctx, tx, n), errors.New("no such order"))
		}, nil, "it failed, and changed nothing", 0, "it failed, and changed nothing"},
		{"it panics", func(context.Context, pgx.Tx, *testkit.Note) error { panic("nil order") }, nil, "it failed, and changed nothing", 0, "it failed, and changed nothing"},
		{"it was forgotten since", nil, func(s *testkit.Shop) { s.Exec(`delete from idem_events`) }, "it is not done any more", 0, "it failed, and changed nothing"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := testkit.NewInboxShop(t)
			s.Inbox.KeepPayloads = true
			s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
				if c.handler != nil && !idem.IsDryRun(ctx) && testkit.QueryOne[bool](s, s.Pool, `select exists (select from idem_audit)`) {
					return c.handler(ctx, tx, n)
				}
				return testkit.Pay(ctx, tx, n)
			})
			s.Store(testkit.Letter("e1", "o1", 1))
			s.Drain(1)
			row := `select event || state || attempts || starts || done_at || received_at from idem_events`
			before := testkit.QueryOne[string](s, s.Pool, row)

			plan, err := operator.New(s.Inbox, "ana").PlanRerun(t.Context(), "", "e1")
			if err != nil {
				t.Fatal(err)
			}
			s.WantEffects(1) // the dry run had none
			if _, err := plan.Do(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "give a reason") {
				t.Errorf("without a reason: %v", err)
			}
			if c.before != nil {
				c.before(s)
			}
			r, err := plan.Do(t.Context(), "a ledger was restored")
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || r.Acted != int64(c.effects) {
				t.Errorf("rerun: %d, %v", r.Acted, err)
			}
			s.WantEffects(1 + c.effects)
			if c.before == nil && testkit.QueryOne[string](s, s.Pool, row) != before {
				t.Errorf("the row was %s, and is %s", before, testkit.QueryOne[string](s, s.Pool, row))
			}
			if got := testkit.QueryOne[string](s, s.Pool, `select split_part(result, ';', 1) from idem_audit`); got != c.result {
				t.Errorf("the trail says %q", got)
			}
		})
	}
}

func TestARerunNeedsADoneEventWithItsBodyAndAHandlerThatPasses(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	fails := false
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		if fails {
			return errors.New("no such order")
		}
		return testkit.Pay(ctx, tx, n)
	})
	ana := operator.New(s.Inbox, "ana")
	refused := func(says string) {
		t.Helper()
		if _, err := ana.PlanRerun(t.Context(), "", "e1"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("rerun: %v, want %q", err, says)
		}
	}
	refused("no such event is stored")
	s.Store(testkit.Letter("e1", "o1", 1))
	refused("it is pending: replay or requeue it")
	s.Drain(1)
	refused("its body is not stored")
	s.Exec(`insert into idem_archive (event, received_at, body) values ('notes//e1', now(), '{"id":"e1","type":"paid","order":"o1"}')`)
	fails = true
	refused("a dry run comes to retrying, and nothing was changed")
	s.WantEffects(1)
}
