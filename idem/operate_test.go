package idem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// office is an inbox on a shop's database and handlers, and what its workers
// have settled.
type office struct {
	*idem.Inbox
	shop   *shop
	worked chan idem.Observation
}

// newOffice opens one whose workers try nothing twice by themselves.
func newOffice(s *shop, on *pool) *office {
	o := &office{Inbox: idem.NewInbox(on, s.notes), shop: s, worked: make(chan idem.Observation, 1<<14)}
	o.Logger = s.processor.Logger
	o.Poll = 10 * time.Millisecond
	o.Backoff = func(int) time.Duration { return time.Hour }
	o.Observe = func(_ context.Context, seen idem.Observation) {
		if seen.Outcome != idem.Pending && seen.Outcome != idem.Duplicate {
			o.worked <- seen
		}
	}
	return o
}

// queue stores new events.
func (o *office) queue(events ...idem.Event) {
	o.shop.Helper()
	for _, e := range events {
		if outcome, err := o.Accept(o.shop.Context(), e); outcome != idem.Pending || err != nil {
			o.shop.Fatalf("Accept of %s = %s, %v, want queued", e.ID, outcome, err)
		}
	}
}

// start starts the workers. What it returns ends them, and waits for that.
func (o *office) start() (stop func()) {
	ctx, cancel := context.WithCancel(o.shop.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	return func() {
		o.shop.Helper()
		cancel()
		if err := <-ended; err != nil {
			o.shop.Errorf("Run = %v", err)
		}
	}
}

// next is what the workers settle next.
func (o *office) next() idem.Observation {
	o.shop.Helper()
	select {
	case seen := <-o.worked:
		return seen
	case <-time.After(20 * time.Second):
		o.shop.Fatalf("the workers have settled nothing in 20 s\n%s", o.shop.logged())
		return idem.Observation{}
	}
}

// work has the workers settle n events, and ends them.
func (o *office) work(n int) {
	o.shop.Helper()
	stop := o.start()
	defer stop()
	for range n {
		o.next()
	}
}

func booking(id, order string) idem.Event {
	return identify(fmt.Appendf(nil, `{"id":%q,"type":"paid","order":%q}`, id, order))
}

func in(scope string, e idem.Event) idem.Event {
	e.Scope = scope
	return e
}

// refuseBad is a handler that cannot do the events whose id begins with bad.
func refuseBad(ctx context.Context, tx pgx.Tx, n *note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return idem.NoRetry(errors.New("no such order"))
	}
	return pay(ctx, tx, n)
}

func TestStatsAndBlockedTellWhatWaits(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(refuseBad)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "a"), booking("a2", "a"), booking("a3", "a"), booking("bad2", "b"), booking("b2", "b"),
		booking("bad3", "nothing behind it"), booking("d1", "d"),
		in("shop/1", booking("bad1", "a")), in("shop/1", booking("a2", "a")))
	o.work(5) // four that are bad, and d1
	s.exec(`update idem_events e set received_at = now() - days * interval '1 day'
		from (values ('notes//bad2', 3), ('notes//bad1', 2), ('notes//a3', 5)) as ages (event, days) where e.event = ages.event`)
	s.exec(`insert into idem_events (event, type, key, state) values ('other//1', '', 'k', 'parked'), ('other//2', '', 'k', 'pending')`)
	s.exec(`insert into idem_payloads (event, done, queue, received_at, body)
		select event, false, 'other//k', now(), '' from idem_events where event like 'other/%'`)

	want := idem.Stats{Pending: idem.Backlog{Events: 4}, Parked: idem.Backlog{Events: 4}, BlockedKeys: 3}
	for name, stats := range map[string]func(context.Context) (idem.Stats, error){"inbox": o.Stats, "processor": s.processor.Stats} {
		got, err := stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(idem.Backlog{}, "Oldest")); diff != "" {
			t.Errorf("Stats of the %s (-want +got):\n%s", name, diff)
		}
		if !days(5, got.Pending.Oldest) || !days(3, got.Parked.Oldest) {
			t.Errorf("the oldest pending event is %s old, the oldest failed %s: want 5 and 3 days", got.Pending.Oldest, got.Parked.Oldest)
		}
	}

	blocked, err := o.Blocked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantBlocked := []idem.Blocked{
		{Key: "b", ID: "bad2", Type: "paid", LastError: "no such order", Waiting: 1},
		{Key: "a", ID: "bad1", Type: "paid", LastError: "no such order", Waiting: 2},
		{Scope: "shop/1", Key: "a", ID: "bad1", Type: "paid", LastError: "no such order", Waiting: 1},
	}
	if diff := cmp.Diff(wantBlocked, blocked, cmpopts.IgnoreFields(idem.Blocked{}, "Age")); diff != "" {
		t.Error("Blocked (-want +got):\n" + diff)
	}
	if !days(3, blocked[0].Age) || !days(2, blocked[1].Age) || !days(0, blocked[2].Age) {
		t.Errorf("the ages of the blocked keys are wrong: %+v", blocked)
	}
}

// days tells whether an age is that of some days, and less than one more.
func days(n int, age time.Duration) bool {
	return age > time.Duration(n)*24*time.Hour && age < time.Duration(n+1)*24*time.Hour
}

// An older event may arrive behind a failed one, and fail as well.
func TestKeyWithTwoFailedEventsIsOneBlockedKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(refuseBad)
	o := newOffice(s, s.pool)
	at := func(hour int, e idem.Event) idem.Event {
		e.OccurredAt = time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC)
		return e
	}
	o.queue(at(10, booking("bad10", "a")))
	o.work(1)
	o.queue(at(11, booking("a11", "a")), at(9, booking("bad9", "a")))
	o.work(1)
	s.wantState("bad9", idem.StateParked)
	s.wantState("a11", idem.StatePending)
	blocked, err := o.Blocked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []idem.Blocked{{Key: "a", ID: "bad9", Type: "paid", LastError: "no such order", Waiting: 1}}
	if diff := cmp.Diff(want, blocked, cmpopts.IgnoreFields(idem.Blocked{}, "Age")); diff != "" {
		t.Error("Blocked (-want +got):\n" + diff)
	}
	if stats, err := o.Stats(t.Context()); stats.BlockedKeys != 1 || err != nil {
		t.Errorf("Stats = %+v, %v, want one blocked key", stats, err)
	}
}

func TestReplayOfPendingEventsDoesTheWorkOfAnInboxWithoutWorkers(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(refuseBad)
	o := newOffice(s, s.pool)
	o.queue(booking("e1", "a"), booking("bad1", "b"), booking("e2", "a"), booking("e3", "c"))
	s.exec(`update idem_events set due_at = now() + interval '1 hour' where event like '%e2'`)
	s.exec(`insert into idem_claims select event, now() - interval '1 hour' from idem_events where event like '%e3'`) // and its worker died
	s.wantReplayed(idem.Filter{}, idem.Replayed{})
	s.wantReplayed(idem.Filter{States: []idem.State{idem.StatePending}}, idem.Replayed{Done: 3, Failed: 1})
	s.wantEffects(3)
	s.wantState("bad1", idem.StatePending)
	if got := queryOne[string](s, `select attempts || ' ' || last_error from idem_events where event like '%bad1'`); got != "1 no such order" {
		t.Errorf("stored of the event that failed: %q", got)
	}
	if left := queryOne[int](s, `select count(*) from idem_payloads`); left != 1 {
		t.Errorf("%d payloads are left, want that of the event that failed", left)
	}
	o.work(1) // bad1: nothing else is left to do
	s.wantEffects(3)
	s.wantState("bad1", idem.StateParked)
}

// A worker whose claim is done by somebody else has nothing to do, and says so
// to nobody.
func TestReplayAndWorkersAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	o := newOffice(s, s.pool)
	for i := range 60 {
		o.queue(booking(fmt.Sprint(i), fmt.Sprint(i%7)))
	}
	stop := o.start()
	defer stop()
	replayed, err := s.processor.Replay(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}})
	if err != nil || replayed.Failed != 0 {
		t.Fatalf("Replay = %+v, %v", replayed, err)
	}
	for range 60 - replayed.Done {
		if seen := o.next(); seen.Outcome != idem.Done {
			t.Errorf("a worker's outcome is %s, %v", seen.Outcome, seen.Err)
		}
	}
	s.wantEffects(60)
	if ids := queryOne[int](s, `select count(distinct event) from effects`); ids != 60 {
		t.Errorf("%d events have an effect, want 60", ids)
	}
}

func ids(events []idem.StoredEvent) []string {
	var all []string
	for _, s := range events {
		all = append(all, strings.TrimPrefix(s.Scope+" "+s.ID, " "))
	}
	return all
}

func (s *shop) listed(f idem.Filter) []idem.StoredEvent {
	s.Helper()
	var all []idem.StoredEvent
	for stored, err := range s.processor.List(s.Context(), f) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, stored)
	}
	return all
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
