package idem_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// inOrder registers a handler that notes the order of effects, and returns what
// reads it: the ids of an order's events.
func (m *app) inOrder() (effects func(order string) []string) {
	m.exec(`create table worked (n serial, event text, queue text)`)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		_, err := tx.Exec(ctx, `insert into worked (event, queue) values ($1, $2)`, n.ID, n.Order)
		return err
	})
	return func(order string) []string {
		return queryOne[[]string](m, `select coalesce(array_agg(event order by n), '{}') from worked where queue = $1`, order)
	}
}

// storeTogether stores events in one statement, in the order given.
func (m *app) storeTogether(events ...idem.Event) {
	m.Helper()
	release := m.hold()
	var deliveries sync.WaitGroup
	deliveries.Go(func() { m.store(letter("first", "first", 0)) })
	m.untilHeld()
	for n, e := range events {
		deliveries.Go(func() { m.store(e) })
		m.untilWaiting(n + 1)
	}
	release()
	deliveries.Wait()
}

func TestEventsOfAKeyAreWorkedByTheProvidersTime(t *testing.T) {
	t.Parallel()
	const keys, each = 8, 15
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
				m.store(events[i])
			}
		})
	}
	deliveries.Wait()
	for range 3 { // three processes
		m.start(m.newInbox(m.pool))
	}
	for range events {
		m.wantWorked(idem.Done)
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
					m.store(events...)
				}
				for range 3 {
					m.start(m.newInbox(m.pool))
				}
				for queryOne[bool](m, `select exists (select from idem_payloads)`) {
					m.wantWorked(idem.Done)
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
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		entered <- n.ID
		<-release
		return pay(ctx, tx, n)
	})
	m.store(letter("newer", "o1", 2))
	m.start(m.inbox)
	other := m.newInbox(m.pool)
	m.start(other)
	if id := <-entered; id != "newer" {
		t.Fatal(id)
	}
	m.store(letter("older", "o1", 1))
	// A worker claims it, finds newer in flight, and releases it.
	m.until(`select starts > 0 and claimed_by is null from idem_events where event like '%older'`)
	select {
	case id := <-entered:
		t.Errorf("%s is processed together with newer", id)
	default:
	}
	m.wantRow("older", `(state, attempts, crashes)`, `(pending,0,0)`)
	close(release)
	m.wantWorked(idem.Done, idem.Done)
	m.wantEffects(2)
}

// An event that failed holds its key, and comes again.
func TestFailedEventThatComesAgainHasItsPlaceStill(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	var tried []string
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if tried = append(tried, n.ID); len(tried) == 1 {
			return idem.NoRetry(errors.New("no such order"))
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("e1", "o1", 0))
	m.store(letter("e2", "o1", 0))
	m.start(m.inbox)
	m.wantWorked(idem.Parked)
	m.store(letter("e1", "o1", 0))
	m.wantWorked(idem.Done, idem.Done)
	if diff := cmp.Diff([]string{"e1", "e1", "e2"}, tried); diff != "" {
		t.Error("tried (-want +got):\n" + diff)
	}
}

func TestDifferentKeysAreWorkedAtOnce(t *testing.T) {
	t.Parallel()
	const workers = 5
	m := openInboxApp(t, poolOf(t, workers+2))
	m.inbox.Workers = workers
	var all sync.WaitGroup // they meet in their handlers
	all.Add(workers)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		all.Done()
		all.Wait()
		return pay(ctx, tx, n)
	})
	for n := range workers {
		m.store(letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	m.start(m.inbox)
	for range workers {
		m.wantWorked(idem.Done)
	}
}

// Events without a key wait for nobody.
func TestEventsWithoutAKeyAreWorkedAtOnce(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 4))
	m.inbox.Workers = 2
	var both sync.WaitGroup
	both.Add(2)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		both.Done()
		both.Wait()
		return pay(ctx, tx, n)
	})
	m.store(letter("e1", "", 1), letter("e2", "", 2))
	m.start(m.inbox)
	m.wantWorked(idem.Done, idem.Done)
}

// Two applications may use one database, each in its schema.
func TestApplicationsOfOneDatabaseDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	busy, idle := newInboxApp(t), newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	busy.on(func(context.Context, pgx.Tx, *note) error { close(entered); <-release; return nil })
	idle.on(pay)
	busy.store(letter("e1", "shared", 1))
	busy.start(busy.inbox)
	t.Cleanup(func() { close(release) }) // before it is stopped
	<-entered
	idle.store(letter("e1", "shared", 1))
	idle.start(idle.inbox)
	idle.wantWorked(idem.Done)
}

// It is parked at its place, and nothing of its entity overtakes it.
func TestEventThatDoesNotDecodeKeepsItsKeyAndItsPlace(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	broken := letter("e1", "o1", 1)
	broken.Payload = []byte(`{"id":7,"type":"paid","order":"o1"}`)
	m.store(letter("e2", "o1", 2), broken, letter("other", "o2", 1))
	m.drain()
	m.wantState("e1", idem.StateParked)
	m.wantState("e2", idem.StatePending)
	m.wantState("other", idem.StateDone)
	if n, err := m.inbox.Discard(t.Context(), idem.Filter{Keys: []string{"o1"}}, "booked by hand"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	m.drain()
	m.wantState("e2", idem.StateDone)
}
