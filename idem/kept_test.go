package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

const newBody = `{"id":"e1","type":"new","order":"o1"}`

func TestUnhandledEventIsKeptAndReplayedOnceThereIsAHandler(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.wantAnswer(newBody, http.StatusOK)
	s.wantAnswer(newBody, http.StatusOK)
	s.wantState("e1", idem.StateUnhandled)
	s.wantPayload("e1", newBody)

	s.deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	s.wantEffects(1)
	s.wantState("e1", idem.StateDone)
	s.wantPayload("e1", "")
	s.wantReplayed(idem.Filter{}, idem.Replayed{})
	s.wantAnswer(newBody, http.StatusOK)
	s.wantEffects(1)
}

func (s *app) wantReplayed(f idem.Filter, want idem.Replayed) {
	s.Helper()
	got, err := s.processor.Replay(s.Context(), f)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(counted(want), counted(got)); diff != "" {
		s.Error("Replay: done, failed, unhandled (-want +got):\n" + diff)
	}
}

func TestUnhandledEventThatComesAgainIsDoneWithoutReplay(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.wantAnswer(newBody, http.StatusOK)
	s.deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
	s.wantAnswer(newBody, http.StatusOK)
	s.wantEffects(1)
	s.wantState("e1", idem.StateDone)
	s.wantPayload("e1", "")
}

func TestPoisonEventIsParkedAfterTenFailures(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	for range 9 {
		s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
		s.wantState("e1", idem.StateRetrying)
		s.wantPayload("e1", paid("e1")) // should the provider give up before
	}
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantState("e1", idem.StateParked)
	s.wantPayload("e1", paid("e1"))
	if got := queryOne[string](s, `select attempts || ' ' || last_error from idem_events`); got != "10 no such order" {
		t.Errorf("stored: %q", got)
	}
	s.wantEffects(0)

	s.deploy(func(n *notes) { idem.Handle(&n.Routes, "paid", pay) })
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	s.wantEffects(1)
	s.wantState("e1", idem.StateDone)
	s.wantPayload("e1", "")
}

func TestParkedEventThatFailsAgainStaysParked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.processor.ParkAfter = 1
	s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
	s.wantState("e1", idem.StateParked)
	s.wantPayload("e1", paid("e1"))
	if got := queryOne[int](s, `select attempts from idem_events`); got != 3 {
		t.Errorf("%d failures are counted, want 3", got)
	}
}

func TestUnhandledEventWhoseNewHandlerFailsIsNotLost(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.wantAnswer(newBody, http.StatusOK)
	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	})
	s.wantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
	s.wantState("e1", idem.StateParked)
	s.wantPayload("e1", newBody)
}

// The handler existed and failed, then a deploy removed it: the provider is told
// that the event is stored, so it must be, with its payload.
func TestRetryingEventWhoseHandlerWentAwayIsKept(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.deploy(func(*notes) {})
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantState("e1", idem.StateUnhandled)
	s.wantPayload("e1", paid("e1"))
}

func TestReplayTakesWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		filter idem.Filter
		want   idem.Replayed
	}{
		"everything":           {idem.Filter{}, idem.Replayed{Done: 3, Unhandled: 1}},
		"one id":               {idem.Filter{IDs: []string{"n1"}}, idem.Replayed{Done: 2}},
		"one type":             {idem.Filter{Types: []string{"new"}}, idem.Replayed{Done: 2}},
		"one state":            {idem.Filter{States: []idem.State{idem.StateParked}}, idem.Replayed{Done: 1}},
		"one account":          {idem.Filter{Scopes: []string{"b"}}, idem.Replayed{Done: 1}},
		"nothing":              {idem.Filter{IDs: []string{}}, idem.Replayed{}},
		"what is done":         {idem.Filter{States: []idem.State{idem.StateDone}}, idem.Replayed{}},
		"what is of two kinds": {idem.Filter{IDs: []string{"n1"}, Types: []string{"paid"}}, idem.Replayed{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.processor.ParkAfter = 1
			s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
			s.wantAnswer(paid("p1"), http.StatusOK)
			s.wantAnswer(`{"id":"n1","type":"new"}`, http.StatusOK)
			s.wantAnswer(`{"id":"u1","type":"unknown"}`, http.StatusOK)
			if _, _, err := s.post(t.Context(), `{"id":"n1","type":"new"}`, map[string]string{"account": "b"}); err != nil {
				t.Fatal(err)
			}
			s.deploy(func(n *notes) {
				idem.Handle(&n.Routes, "paid", pay)
				idem.Handle(&n.Routes, "new", pay)
			})
			s.wantReplayed(c.filter, c.want)
			s.wantEffects(c.want.Done)
		})
	}
}

func TestReplayGoesOnAfterAFailureAndThroughManyPages(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for i := range 250 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	var order []string
	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(ctx context.Context, tx pgx.Tx, n *note) error {
			order = append(order, n.ID)
			if strings.HasSuffix(n.ID, "7") {
				return errors.New("no such order")
			}
			return pay(ctx, tx, n)
		})
	})
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 225, Failed: 25})
	s.wantEffects(225)
	for i, id := range order {
		if id != fmt.Sprint(i) {
			t.Fatalf("event %s was replayed in place %d: the order is not that of arrival", id, i)
		}
	}
}

func (s *app) accept(body string, want idem.Outcome) {
	s.Helper()
	if outcome, err := s.processor.Accept(s.Context(), identify([]byte(body))); outcome != want || err != nil {
		s.Fatalf("Accept = %s, %v, want %s", outcome, err, want)
	}
}

func TestEventThatStillDoesNotDecodeStaysParked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	s.accept(`{"type":"paid","order":7}`, idem.Unhandled) // the name does not decode either
	body := []byte(`{"id":"e1","type":"paid","order":7}`)
	if outcome, err := s.processor.Accept(t.Context(), idem.Event{ID: "e1", Type: "paid", Payload: body}); outcome != idem.Parked {
		t.Fatal(outcome, err)
	}
	s.wantReplayed(idem.Filter{}, idem.Replayed{Failed: 1, Unhandled: 1})
	s.wantState("e1", idem.StateParked)
	s.wantEffects(0)
}

func TestReplaysAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for i := range 20 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	s.deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
	var replays sync.WaitGroup
	for range 4 {
		p := s.newProcessor()
		replays.Go(func() {
			if _, err := p.Replay(t.Context(), idem.Filter{}); err != nil {
				t.Error(err)
			}
		})
	}
	replays.Wait()
	s.wantEffects(20)
}

func TestReplayStopsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for i := range 3 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(ctx context.Context, tx pgx.Tx, n *note) error {
			stop()
			return pay(ctx, tx, n)
		})
	})
	got, err := s.processor.Replay(ctx, idem.Filter{})
	if got.Done != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("Replay = %+v, %v, want one done and context canceled", got, err)
	}
	s.wantEffects(1)
}

func TestPruneForgetsOldEventsButNoneThatIsParked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.processor.ParkAfter = 1
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if strings.HasPrefix(n.ID, "parked") {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	for _, id := range []string{"old", "parked-old", "young"} {
		s.wantAnswer(paid(id), http.StatusOK)
	}
	s.wantAnswer(`{"id":"unhandled-old","type":"new"}`, http.StatusOK)
	s.wantAnswer(`{"id":"unhandled-young","type":"new"}`, http.StatusOK)
	s.exec(`update idem_events set received_at = now() - interval '50 days' where event like '%old'`)
	s.exec(`update idem_events set received_at = now() - interval '44 days' where event like '%young'`)
	s.exec(`insert into idem_events (event, type, key, state, received_at) values ('other//old', '', '', 'done', '2020-01-01')`)
	s.wantPruned(s.processor, 2)
	left := queryOne[[]string](s, `select array_agg(event order by event) from idem_events where event like 'notes/%'`)
	if diff := cmp.Diff([]string{"notes//parked-old", "notes//unhandled-young", "notes//young"}, left); diff != "" {
		t.Error("left (-want +got):\n" + diff)
	}
	s.wantPayload("unhandled-old", "")
	s.wantPayload("parked-old", paid("parked-old"))
}

func TestPruneWorksInBatches(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'done', '2020-01-01' from generate_series(1, 2500) n`)
	s.wantPruned(s.processor, 2500)
}

// A delivery in flight holds its row's lock; pruning must pass it by.
func TestPruneWaitsForNoDelivery(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.wantAnswer(newBody, http.StatusOK)
	s.exec(`update idem_events set received_at = '2020-01-01'`)
	s.exec(`insert into idem_events (event, type, key, state, received_at) values ('notes//old', '', '', 'done', '2020-01-01')`)
	s.wantSeen(s.processor)
	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(ctx context.Context, tx pgx.Tx, n *note) error {
			if deleted, err := s.processor.Prune(ctx); deleted != 1 || err != nil {
				t.Errorf("Prune = %d, %v, want 1", deleted, err)
			}
			return pay(ctx, tx, n)
		})
	})
	s.wantAnswer(newBody, http.StatusOK)
	s.wantEffects(1)
}

func TestStatsCountWhatIsNotDone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.processor.ParkAfter = 2
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "done" {
			return pay(ctx, tx, n)
		}
		return errors.New("no such order")
	})
	s.wantAnswer(paid("done"), http.StatusOK)
	s.wantAnswer(paid("retrying"), http.StatusServiceUnavailable)
	s.wantAnswer(paid("failed"), http.StatusServiceUnavailable)
	s.wantAnswer(paid("failed"), http.StatusOK)
	s.wantAnswer(`{"id":"n1","type":"new"}`, http.StatusOK)
	s.wantAnswer(`{"id":"n2","type":"new"}`, http.StatusOK)
	s.exec(`update idem_events set received_at = now() - interval '100 days' where event = 'notes//n1'`)
	got, err := s.processor.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := idem.Stats{Retrying: idem.Backlog{Events: 1}, Parked: idem.Backlog{Events: 1}, Unhandled: idem.Backlog{Events: 2}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(idem.Backlog{}, "Oldest")); diff != "" {
		t.Error("Stats (-want +got):\n" + diff)
	}
	if age := got.Unhandled.Oldest; age < 99*24*time.Hour || age > 101*24*time.Hour {
		t.Errorf("the oldest unhandled event is %s old, want 100 days", age)
	}
	if got.Parked.Oldest <= 0 {
		t.Error("the oldest parked event has no age")
	}
}
