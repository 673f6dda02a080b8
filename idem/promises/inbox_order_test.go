package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

func TestEventsOfAKeyAreWorkedByTheProvidersTime(t *testing.T) {
	t.Parallel()
	const keys, each = 5, 10
	m := openInboxApp(t, poolOf(t, 12))
	worked := m.inOrder()
	var events []idem.Event
	for key := range keys {
		for at := 1; at <= each; at++ {
			events = append(events, letter(fmt.Sprintf("%d-%d", key, at), fmt.Sprint(key), at))
		}
	}
	rand.Shuffle(len(events), func(a, b int) { events[a], events[b] = events[b], events[a] })
	var deliveries sync.WaitGroup
	for n := range 4 {
		deliveries.Go(func() {
			for i := n; i < len(events); i += 4 {
				m.Store(events[i])
			}
		})
	}
	deliveries.Wait()
	for range 3 { // three processes
		m.Start(m.NewInbox(m.Pool))
	}
	for range events {
		m.WantWorked(idem.Done)
	}
	for key := range keys {
		var want []string
		for at := 1; at <= each; at++ {
			want = append(want, fmt.Sprintf("%d-%d", key, at))
		}
		if diff := cmp.Diff(want, worked(fmt.Sprint(key))); diff != "" {
			t.Errorf("order of key %d (-want +got):\n%s", key, diff)
		}
	}
}

// The provider's time is the same, or unknown: then they go as they arrived,
// also when one statement has stored them all.
func TestEventsOfAKeyAreWorkedInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"same time": 7, "no time": 0} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, together=%t", name, together), func(t *testing.T) {
				t.Parallel()
				m := newInboxApp(t)
				worked := m.inOrder()
				m.countBatches()
				var events []idem.Event
				var want []string
				for n := range 8 {
					id := fmt.Sprint(9 - n) // not the order of ids
					want, events = append(want, id), append(events, letter(id, "o1", at))
				}
				if together {
					m.storeTogether(events...)
					m.wantBatches(1, 8)
				} else {
					m.Store(events...)
				}
				for range 3 {
					m.Start(m.NewInbox(m.Pool))
				}
				for queryOne[bool](m, `select exists (select from idem_payloads)`) {
					m.WantWorked(idem.Done)
				}
				if diff := cmp.Diff(want, worked("o1")); diff != "" {
					t.Error("order (-want +got):\n" + diff)
				}
			})
		}
	}
}

// An event may arrive late: a newer one of its key is in flight already.
func TestOlderEventThatComesLateWaitsForTheNewerInFlight(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	entered, release := make(chan string, 2), make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		entered <- n.ID
		<-release
		return pay(ctx, tx, n)
	})
	m.Store(letter("newer", "o1", 2))
	m.Start(m.Inbox)
	other := m.NewInbox(m.Pool)
	m.Start(other)
	if id := <-entered; id != "newer" {
		t.Fatal(id)
	}
	m.Store(letter("older", "o1", 1))
	// A worker claims it, finds newer in flight, and releases it.
	m.Until(`select starts > 0 and claimed_by is null from idem_events where event like '%older'`)
	select {
	case id := <-entered:
		t.Errorf("%s is processed together with newer", id)
	default:
	}
	m.WantRow("older", `(state, attempts, crashes)`, `(pending,0,0)`)
	close(release)
	m.WantWorked(idem.Done, idem.Done)
	m.WantEffects(2)
}

func TestDifferentKeysAreWorkedAtOnce(t *testing.T) {
	t.Parallel()
	const workers = 5
	m := openInboxApp(t, poolOf(t, workers+2))
	m.Inbox.Workers = workers
	var all sync.WaitGroup // they meet in their handlers
	all.Add(workers)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		all.Done()
		all.Wait()
		return pay(ctx, tx, n)
	})
	for n := range workers {
		m.Store(letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	m.Start(m.Inbox)
	for range workers {
		m.WantWorked(idem.Done)
	}
}

// Events without a key wait for nobody.
func TestEventsWithoutAKeyAreWorkedAtOnce(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 4))
	m.Inbox.Workers = 2
	var both sync.WaitGroup
	both.Add(2)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		both.Done()
		both.Wait()
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "", 1), letter("e2", "", 2))
	m.Start(m.Inbox)
	m.WantWorked(idem.Done, idem.Done)
}

// Two applications may use one database, each in its schema.
func TestApplicationsOfOneDatabaseDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	busy, idle := newInboxApp(t), newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	busy.On(func(context.Context, pgx.Tx, *note) error { close(entered); <-release; return nil })
	idle.On(pay)
	busy.Store(letter("e1", "shared", 1))
	busy.Start(busy.Inbox)
	t.Cleanup(func() { close(release) }) // before it is stopped
	<-entered
	idle.Store(letter("e1", "shared", 1))
	idle.Start(idle.Inbox)
	idle.WantWorked(idem.Done)
}

func TestEventThatFailsHoldsItsKeyAndNoOther(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	var fixed atomic.Bool
	m.Exec(`alter table effects add n serial`)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "a1" && !fixed.Load() {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("a1", "a", 1), letter("a2", "a", 2))
	m.Start(m.Inbox)
	m.WantWorked(idem.Retrying)
	m.Store(letter("b1", "b", 3), letter("b2", "b", 4)) // workers that find these have passed a's
	m.WantWorked(idem.Done, idem.Done)
	m.WantRow("a2", `(state, attempts, claimed_by)`, `(pending,0,)`)
	fixed.Store(true)
	m.Exec(`update idem_payloads set due_at = now() where due_at > now()`)
	m.WantWorked(idem.Done, idem.Done)
	got := queryOne[[]string](m, `select array_agg(event order by n) from effects`)
	if diff := cmp.Diff([]string{"b1", "b2", "a1", "a2"}, got); diff != "" {
		t.Error("order (-want +got):\n" + diff)
	}
}

func TestPassParkedLetsTheKeyGoOn(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.PassParked = true
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "a1" {
			return idem.NoRetry(errors.New("no such order"))
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("a1", "a", 1), letter("a2", "a", 2))
	m.Start(m.Inbox)
	m.WantWorked(idem.Parked, idem.Done)
	m.WantState("a1", idem.StateParked)
	m.WantPayload("a1", string(letter("a1", "a", 1).Payload))
}

// Nobody else would say why its events stand still.
func TestDrainSaysThatParkedEventsCannotBePassed(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(refuseBad)
	m.Store(letter("bad1", "o1", 1), letter("after", "o1", 2))
	m.Drain(1)
	m.Exec(`
		create function refuse() returns trigger language plpgsql as $$ begin raise 'it stays in its lane'; end $$;
		create trigger refuse before update on idem_payloads for each row when (old.lane is not null and new.lane is null) execute function refuse()`)
	m.Inbox.PassParked = true
	if err := m.Inbox.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "passing parked events") {
		t.Errorf("Drain = %v", err)
	}
}

// A waiting event is discarded while the first of its lane commits. Neither of
// the two transactions sees the other, and yet what is behind both goes on.
func TestDiscardBehindAnEventThatCommitsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 8))
	m.Exec(`create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(hashtext(current_schema())); return null; end $$;
		create trigger hold after delete on idem_payloads for each row when (old.event like '%second') execute function hold()`)
	entered, release := make(chan struct{}), make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "first" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("first", "o1", 1), letter("second", "o1", 2), letter("third", "o1", 3))
	m.Exec(`update idem_payloads set due_at = null where event not like '%first'`) // as workers hold them back
	m.Start(m.Inbox)
	<-entered
	holder, err := m.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock(hashtext(current_schema()))`); err != nil {
		t.Fatal(err)
	}
	discarded := make(chan error, 1)
	go func() {
		_, err := m.Inbox.Discard(context.Background(), idem.Filter{IDs: []string{"second"}, States: []idem.State{idem.StatePending}}, "a mistake")
		discarded <- err
	}()
	const waiting = `select count(*) > 0 from pg_stat_activity where application_name = current_setting('application_name')
		and wait_event_type = 'Lock' and wait_event = $1`
	m.Until(waiting, "advisory") // the Discard
	close(release)
	m.Until(waiting, "transactionid") // the commit of first, for the Discard
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-discarded; err != nil {
		t.Fatal(err)
	}
	m.WantWorked(idem.Done, idem.Done)
	m.WantState("third", idem.StateDone)
}

// An event comes, and is held back, while one before it is being discarded, with
// many others perhaps. The commit of the first of the lane waits for the discarded
// one, and promotes nothing.
func TestEventThatIsHeldBackDuringADiscardGoesOn(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 8))
	m.On(pay)
	const lock = `pg_advisory_xact_lock(hashtext(current_schema()))`
	m.Exec(`create function hold() returns trigger language plpgsql as $$ begin perform ` + lock + `; return null; end $$;
		create constraint trigger hold after delete on idem_payloads deferrable initially deferred
			for each row when (old.event like '%second') execute function hold()`)
	claim := func() store.Claims {
		t.Helper()
		found, err := store.ClaimEvents(t.Context(), m.Pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	m.Store(letter("first", "o1", 1), letter("second", "o1", 2))
	first := claim().Claims[0]
	holder, err := m.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), `select `+lock); err != nil {
		t.Fatal(err)
	}
	discarded := make(chan error, 1)
	go func() {
		_, err := m.Inbox.Discard(context.Background(), idem.Filter{IDs: []string{"second"}, States: []idem.State{idem.StatePending}}, "a mistake")
		discarded <- err
	}()
	const waiting = `select count(*) > 0 from pg_stat_activity where application_name = current_setting('application_name')
		and wait_event_type = 'Lock' and wait_event = $1`
	m.Until(waiting, "advisory") // the Discard, at its commit
	m.Store(letter("third", "o1", 3))
	claim() // holds third back, behind first
	if ended, err := store.EndClaim(t.Context(), m.Pool, first, store.End{State: store.Pending}); !ended || err != nil {
		t.Fatal(ended, err)
	}
	m.Start(m.Inbox)
	m.Until(waiting, "transactionid") // the commit of first, for the Discard
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-discarded; err != nil {
		t.Fatal(err)
	}
	m.WantWorked(idem.Done)
	if queryOne[bool](m, `select exists (select from idem_payloads where event like '%third' and due_at is null)`) {
		t.Fatal("third is held back behind nothing")
	}
	m.WantWorked(idem.Done)
}

// An event that came behind one in flight is looked at again a moment later, and
// Drain waits for that.
func TestDrainProcessesWhatCameBehindAnEventInFlight(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.Inbox.Workers = 2
	stored := make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		switch n.ID {
		case "a1":
			if _, err := s.Inbox.Accept(ctx, letter("a2", "a", 0)); err != nil {
				return err
			}
			close(stored)
			const postponed = `select due_at > received_at + interval '100 milliseconds'
				from idem_payloads where event like '%a2'`
			if err := s.Await(ctx, postponed); err != nil {
				return err
			}
		case "b1":
			<-stored // so that its worker finds a2
		}
		return pay(ctx, tx, n)
	})
	s.Store(letter("a1", "a", 0), letter("b1", "b", 0))
	s.Drain(3)
	s.WantEffects(3)
}

// inOrder registers a handler that notes the order of effects, and returns what
// reads it: the ids of an order's events.
func (m *app) inOrder() (effects func(order string) []string) {
	m.Exec(`create table worked (n serial, event text, queue text)`)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		_, err := tx.Exec(ctx, `insert into worked (event, queue) values ($1, $2)`, n.ID, n.Order)
		return err
	})
	return func(order string) []string {
		return queryOne[[]string](m, `select coalesce(array_agg(event order by n), '{}') from worked where queue = $1`, order)
	}
}

// storeTogether stores events in one statement, in the order given, and a first one before. That waits for five
// seconds at most: on a machine that is too slow for them to arrive meanwhile, all is done again.
func (m *app) storeTogether(events ...idem.Event) {
	m.Helper()
	for tries := 1; !m.storedTogether(events); tries++ {
		if tries == 10 {
			m.Fatal("the events do not arrive in time:\n" + m.Logged())
		}
		m.Exec(`truncate idem_events, idem_payloads`)
		m.Exec(`do $$ begin truncate batches; exception when undefined_table then null; end $$`) // of a test that counts them
	}
}

func (m *app) storedTogether(events []idem.Event) bool {
	m.Helper()
	release := m.hold()
	var late atomic.Bool
	var deliveries sync.WaitGroup
	deliver := func(e idem.Event) {
		deliveries.Go(func() {
			if o, _ := m.Inbox.Accept(m.Context(), e); o != idem.Pending {
				late.Store(true)
			}
		})
	}
	deliver(letter("first", "first", 0))
	m.untilHeld()
	for n, e := range events {
		deliver(e)
		for engineOf(m.Inbox).(writer).Waiting() <= n && !late.Load() {
			runtime.Gosched()
		}
	}
	release()
	deliveries.Wait()
	return !late.Load()
}

// holdRows begins to store events elsewhere, in a transaction that end ends.
func (s *app) holdRows(ids ...string) (end func(how string)) {
	s.Helper()
	conn := s.Session(`begin`)
	exec := func(sql string, args ...any) {
		if _, err := conn.Exec(s.Context(), sql, args...); err != nil {
			s.Fatal(err)
		}
	}
	exec(`insert into idem_events (event, type, key, state) select 'notes//' || id, 'paid', '', 'done' from unnest($1::text[]) id`, ids)
	return func(how string) { exec(how) }
}

// Many events of one entity that cannot go on, of an outbox with one Key after a night, or requeued by hand: workers take
// them out of their way in a few statements.
func TestACrowdOfOneEntityIsNotInTheWayOfOthers(t *testing.T) {
	t.Parallel()
	const crowd, others = 2500, 20
	s := newInboxApp(t)
	s.On(pay)
	s.Inbox.Workers, s.Inbox.Poll, s.Inbox.PollOnly = 2, time.Millisecond, true
	s.Exec(fmt.Sprintf(`
		insert into idem_events (event, type, key, state) select 'notes//c' || n, 'paid', 'crowd', case n when 1 then 'parked' else 'pending' end from generate_series(1, %d) n;
		insert into idem_payloads (event, source, lane, due_at, received_at, body)
			select 'notes//c' || n, 'notes', 'notes//crowd', case when n > 1 then now() - interval '1 hour' end, now() - interval '1 hour' + n * interval '1 millisecond', '{}' from generate_series(1, %[1]d) n`, crowd))
	for n := range others {
		id := fmt.Sprint("e", n)
		s.Store(letter(id, id, 0))
	}
	s.Drain(others)
	s.WantEffects(others)
	if left := queryOne[int](s, `select count(*) from idem_payloads where due_at is not null`); left > 0 {
		t.Errorf("%d events are due behind a parked one", left)
	}
	searches := queryOne[int](s, `select count(distinct xmin::text) from idem_payloads where event like 'notes//c%'`) // transactions that took some of them out
	if most := crowd/100 + others; searches > most {
		t.Errorf("%d searches took them out, want %d at most", searches, most)
	}
}
