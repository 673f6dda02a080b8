package promises_test

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
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestReplayGoesOnAfterAFailureInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for i := range 40 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	var order []string
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(ctx context.Context, tx pgx.Tx, n *note) error {
			order = append(order, n.ID)
			if strings.HasSuffix(n.ID, "7") {
				return errors.New("no such order")
			}
			return pay(ctx, tx, n)
		})
	})
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 36, Failed: 4})
	s.WantEffects(36)
	for i, id := range order {
		if id != fmt.Sprint(i) {
			t.Fatalf("event %s was replayed in place %d: the order is not that of arrival", id, i)
		}
	}
}

func TestEventThatStillDoesNotDecodeStaysParked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.accept(`{"type":"paid","order":7}`, idem.Parked) // the name does not decode either
	body := []byte(`{"id":"e1","type":"paid","order":7}`)
	if outcome, err := s.First.Accept(t.Context(), idem.Event{ID: "e1", Type: "paid", Payload: body}); outcome != idem.Parked {
		t.Fatal(outcome, err)
	}
	s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 2})
	s.WantState("e1", idem.StateParked)
	s.WantEffects(0)
}

func TestReplaysAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for i := range 20 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	s.Deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
	var replays sync.WaitGroup
	for range 4 {
		p := s.NewFirst()
		replays.Go(func() {
			if _, err := p.Replay(t.Context(), idem.Filter{}); err != nil {
				t.Error(err)
			}
		})
	}
	replays.Wait()
	s.WantEffects(20)
}

func TestReplayStopsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for i := range 3 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(ctx context.Context, tx pgx.Tx, n *note) error {
			stop()
			return pay(ctx, tx, n)
		})
	})
	got, err := s.First.Replay(ctx, idem.Filter{})
	if got.Done != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("Replay = %+v, %v, want one done and context canceled", got, err)
	}
	s.WantEffects(1)
}

func TestStatsCountWhatIsNotDone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "done" {
			return pay(ctx, tx, n)
		}
		return errors.New("no such order")
	})
	s.openInbox()
	s.Inbox.MaxAttempts = 1
	s.Store(letter("done", "o1", 0), letter("failed", "o2", 0))
	s.Drain(2)
	s.Store(letter("pending", "o3", 0))
	s.WantAnswer(`{"id":"n1","type":"new"}`, http.StatusOK)
	s.WantAnswer(`{"id":"n2","type":"new"}`, http.StatusOK)
	s.Exec(`update idem_events set received_at = now() - interval '100 days' where event = 'notes//n1'`)
	got, err := s.First.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := idem.Stats{Pending: idem.Backlog{Events: 1}, Parked: idem.Backlog{Events: 1}, Unhandled: idem.Backlog{Events: 2}}
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

func TestStatsAndBlockedTellWhatWaits(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.openInbox()
	s.Store(letter("bad1", "a", 0), letter("a2", "a", 0), letter("a3", "a", 0), letter("bad2", "b", 0), letter("b2", "b", 0),
		letter("bad3", "nothing behind it", 0), letter("d1", "d", 0),
		in("shop/1", letter("bad1", "a", 0)), in("shop/1", letter("a2", "a", 0)))
	s.Drain(5)                                                   // four that are bad, and d1
	s.Exec(`update idem_payloads set occurred_at = received_at`) // the order stays
	for _, table := range []string{"idem_events", "idem_payloads"} {
		s.Exec(`update ` + table + ` e set received_at = now() - days * interval '1 day'
			from (values ('notes//bad2', 3), ('notes//bad1', 2), ('notes//a3', 5)) as ages (event, days) where e.event = ages.event`)
	}
	s.Exec(`insert into idem_events (event, type, key, state) values ('other//1', '', 'k', 'parked'), ('other//2', '', 'k', 'pending')`)
	s.Exec(`insert into idem_payloads (event, source, lane, received_at, body)
		select event, 'other', 'other//k', now(), '' from idem_events where event like 'other/%'`)

	want := idem.Stats{Pending: idem.Backlog{Events: 4}, Parked: idem.Backlog{Events: 4}, BlockedKeys: 3}
	for name, stats := range map[string]func(context.Context) (idem.Stats, error){"inbox": s.Inbox.Stats, "works first": s.First.Stats} {
		got, err := stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(idem.Backlog{}, "Oldest")); diff != "" {
			t.Errorf("Stats of the %s (-want +got):\n%s", name, diff)
		}
		if !days(5, got.Pending.Oldest) || !days(3, got.Parked.Oldest) {
			t.Errorf("the oldest pending event is %s old, the oldest parked %s: want 5 and 3 days", got.Pending.Oldest, got.Parked.Oldest)
		}
	}

	blocked, _, err := operator.New(s.Inbox, "").Blocked(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	wantBlocked := []operator.Blocked{
		{Key: "b", ID: "bad2", Type: "paid", State: idem.StateParked, LastError: "no such order", Waiting: 1},
		{Key: "a", ID: "bad1", Type: "paid", State: idem.StateParked, LastError: "no such order", Waiting: 2},
		{Scope: "shop/1", Key: "a", ID: "bad1", Type: "paid", State: idem.StateParked, LastError: "no such order", Waiting: 1},
	}
	if diff := cmp.Diff(wantBlocked, blocked, cmpopts.IgnoreFields(operator.Blocked{}, "Age")); diff != "" {
		t.Error("Blocked (-want +got):\n" + diff)
	}
	if !days(3, blocked[0].Age) || !days(2, blocked[1].Age) || !days(0, blocked[2].Age) {
		t.Errorf("the ages of the blocked keys are wrong: %+v", blocked)
	}
}

func TestReplayOfAPendingEventLeavesItBehindTheEarlierOneAndSaysSo(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.openInbox()
	s.Store(letter("a", "o", 1), letter("b", "o", 2))
	var failure error
	sum, err := engineOf(s.First).Replay(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"b"}}, false,
		func(_ idem.Replayed, _ idem.Event, err error) { failure = err })
	if diff := cmp.Diff(idem.Replayed{Failed: 1}, sum); diff != "" || err != nil {
		t.Errorf("Replay, %v (-want +got):\n%s", err, diff)
	}
	if failure == nil || !strings.Contains(failure.Error(), "an earlier event of the same entity is not done") {
		t.Errorf("the replay says %v of b", failure)
	}
	s.WantEffects(0)
	s.WantState("b", idem.StatePending)
}

// A worker whose claim is done by somebody else has nothing to do, and says so
// to nobody.
func TestReplayAndWorkersAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.openInbox()
	for i := range 60 {
		s.Store(letter(fmt.Sprint(i), fmt.Sprint(i%7), 0))
	}
	stop := s.Start(s.Inbox)
	defer stop()
	replayed, err := s.First.Replay(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}})
	if err != nil || replayed.Failed != 0 {
		t.Fatalf("Replay = %+v, %v", replayed, err)
	}
	for done := 0; done < 60; { // by both
		switch seen := s.Next(); {
		case seen.Outcome == idem.Done:
			done++
		case seen.Outcome != idem.Duplicate || seen.Err != nil: // of the replay; a worker tells nobody
			t.Errorf("an outcome is %s, %v", seen.Outcome, seen.Err)
		}
	}
	s.WantEffects(60)
	if ids := queryOne[int](s, `select count(distinct event) from effects`); ids != 60 {
		t.Errorf("%d events have an effect, want 60", ids)
	}
}

// A page shows the oldest few of many, and says how many there are.
func TestBlockedEntitiesAndConflictsAreReadUpToANumberAndCounted(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Exec(`insert into idem_events (event, type, key, state, conflict_at)
		select format('notes//%s%s', kind, n), 'paid', 'o' || n, state, case when kind = 'bad' then now() - n * interval '1 hour' end
		from generate_series(1, 5) n, (values ('bad', 'parked'), ('next', 'pending')) kinds (kind, state)`)
	s.Exec(`insert into idem_payloads (event, source, lane, received_at, body)
		select event, 'notes', 'notes//' || key, now() - interval '1 day' * substring(event from '[0-9]$')::int, '' from idem_events`)
	o := operator.New(s.Inbox, "")
	blocked, all, err := o.Blocked(t.Context(), 2)
	if err != nil || all != 5 || len(blocked) != 2 || blocked[0].ID != "bad5" || blocked[1].ID != "bad4" {
		t.Errorf("Blocked = %+v, %d, %v, want the two oldest of 5", blocked, all, err)
	}
	conflicts, all, err := o.Conflicts(t.Context(), 2)
	if err != nil || all != 5 || len(conflicts) != 2 || conflicts[0].ID != "bad1" || conflicts[1].ID != "bad2" {
		t.Errorf("Conflicts = %+v, %d, %v, want the two latest of 5", conflicts, all, err)
	}
	for _, n := range []int{0, -1} {
		_, _, blockedErr := o.Blocked(t.Context(), n)
		_, _, conflictsErr := o.Conflicts(t.Context(), n)
		for _, err := range []error{blockedErr, conflictsErr} {
			if err == nil || !strings.Contains(err.Error(), "give 1 or more") {
				t.Errorf("of %d: %v, want an error: the sum would not be known", n, err)
			}
		}
	}
}

func (s *app) accept(body string, want idem.Outcome) {
	s.Helper()
	if outcome, err := s.First.Accept(s.Context(), identify([]byte(body))); outcome != want || err != nil {
		s.Fatalf("Accept = %s, %v, want %s", outcome, err, want)
	}
}

// days reports whether an age is that of some days, and less than one more.
func days(n int, age time.Duration) bool {
	return age > time.Duration(n)*24*time.Hour && age < time.Duration(n+1)*24*time.Hour
}
