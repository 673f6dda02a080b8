package promises_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// pausing pauses events.
func (s *app) pausing(p operator.Pause, d time.Duration) {
	s.Helper()
	plan, err := operator.New(s.Inbox, "ana").PlanPause(s.Context(), p, d)
	if err == nil {
		_, err = plan.Do(s.Context(), "the bank is away")
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *app) resuming(p operator.Pause) error {
	plan, err := operator.New(s.Inbox, "ana").PlanResume(s.Context(), p)
	if err == nil {
		_, err = plan.Do(s.Context(), "")
	}
	return err
}

func (s *app) wantRows(query string, want int) {
	s.Helper()
	var got int
	if err := s.Pool.QueryRow(s.Context(), query).Scan(&got); err != nil || got != want {
		s.Errorf("%s = %d, %v, want %d", query, got, err, want)
	}
}

// At its end a pause ends by itself; one that takes the place of another ends when the new one says.
func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	s.Store(letter("e1", "o1", 1))
	s.pausing(operator.Pause{}, time.Hour)
	s.Drain(0)
	s.pausing(operator.Pause{}, time.Millisecond)
	s.Start(s.Inbox)
	s.WantWorked(idem.Done)
	s.Exec(`select pg_sleep(0.002)`)
	if err := s.resuming(operator.Pause{}); !errors.Is(err, operator.ErrNotPaused) {
		t.Errorf("resumed with %v", err)
	}
}

// A claim that has seen the pause puts its event off after the pause was ended.
func TestAnEventThatWasPutOffAfterTheResumeGoesOn(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	s.Store(letter("e1", "o1", 1))
	s.pausing(operator.Pause{Type: "paid"}, time.Hour)
	if err := s.resuming(operator.Pause{Type: "paid"}); err != nil {
		t.Fatal(err)
	}
	s.Exec(`update idem_payloads set due_at = (select until from idem_pauses) where source = 'notes'`)
	s.Drain(1)
}

// A first try without workers has nowhere to leave the event.
func TestAPausedEventIsAnswered503WhereNoWorkersRun(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.WorkFirst, s.Inbox.AnswerWithin = true, time.Millisecond
	s.On(pay)
	s.pausing(operator.Pause{}, time.Hour)
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.WantState("e1", "")
}

// Many paused events are put off many at once, and others do not wait for them.
func TestOthersDoNotWaitForManyPausedEvents(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	s.Exec(`insert into idem_events (event, type, key, state) select 'notes//p' || n, 'sent', 'p' || n, 'pending' from generate_series(1, 4000) n;
		insert into idem_payloads (event, source, lane, due_at, received_at, body) select 'notes//p' || n, 'notes', 'notes//p' || n, now() - interval '1 minute', now(), '{}' from generate_series(1, 4000) n`)
	s.pausing(operator.Pause{Type: "sent"}, time.Hour)
	s.Store(letter("e1", "o1", 1))
	s.Drain(1)
	s.wantRows(`select count(*) from idem_payloads where source = 'notes' and due_at <= now()`, 0)
	s.wantRows(`select max(starts) from idem_events`, 1) // none was claimed to be put off
}

func TestReplayAndRequeueRefuseWhatIsPaused(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	ana := operator.New(s.Inbox, "ana")
	fixed := false
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if !fixed {
			return idem.NoRetry(errors.New("no such order"))
		}
		return pay(ctx, tx, n)
	})
	s.Store(letter("e1", "o1", 1))
	s.Drain(1)
	fixed = true
	s.pausing(operator.Pause{Key: "o1"}, time.Hour)
	f := idem.Filter{IDs: []string{"e1"}}
	const says = `1 of these events are paused, first e1, paid, until `
	for name, plan := range map[string]func(context.Context, idem.Filter) (*operator.Plan, error){"replay": ana.PlanReplay, "requeue": ana.PlanRequeue} {
		if _, err := plan(t.Context(), f); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "by ana: the bank is away") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, _, err := ana.Lookup(t.Context(), "", "e1"); err != nil || l.Pause.Key != "o1" {
		t.Errorf("looked up: %+v, %v", l.Pause, err)
	}
	ana.ReplayPaused = true
	plan, err := ana.PlanReplay(t.Context(), f)
	if err == nil {
		_, err = plan.Do(t.Context(), "")
	}
	if err != nil {
		t.Fatal(err)
	}
	s.WantState("e1", idem.StateDone)
}

func TestAPauseHasAnEndAndAReasonAndIsInTheTrail(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	ana := operator.New(s.Inbox, "ana")
	for _, d := range []time.Duration{0, -time.Hour, operator.MaxPause + 1} {
		if _, err := ana.PlanPause(t.Context(), operator.Pause{}, d); err == nil || !strings.Contains(err.Error(), "at most 7 d from now") {
			t.Errorf("a pause of %s: %v", d, err)
		}
	}
	plan, err := ana.PlanPause(t.Context(), operator.Pause{}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Do(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "give a reason") {
		t.Errorf("a pause without a reason: %v", err)
	}
	s.pausing(operator.Pause{Type: "paid"}, time.Hour)
	all, err := ana.Pauses(t.Context())
	if err != nil || len(all) != 1 || all[0].Type != "paid" || all[0].Actor != "ana" || all[0].Reason != "the bank is away" || all[0].Until.Sub(all[0].At) != time.Hour {
		t.Errorf("paused: %+v, %v", all, err)
	}
	actions, err := ana.Actions(t.Context(), 0, 1)
	if err != nil || len(actions) != 1 || actions[0].Action != "pause" || actions[0].Filter != "events of type paid" || !strings.HasPrefix(actions[0].Result, "until ") {
		t.Errorf("the trail has %+v, %v", actions, err)
	}
}
