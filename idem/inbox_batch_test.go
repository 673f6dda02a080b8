package idem_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// countBatches has the database note how many events each statement stores.
func (m *mailroom) countBatches() {
	m.exec(`create table batches (n serial, events int);
		create function count_batch() returns trigger language plpgsql as $$ begin
			insert into batches (events) select count(*) from fresh having count(*) > 0; return null; end $$;
		create trigger count_batch after insert on idem_events referencing new table as fresh
			for each statement execute function count_batch()`)
}

func (m *mailroom) wantBatches(want ...int) {
	m.Helper()
	got := queryOne[[]int](m.shop, `select coalesce(array_agg(events order by n), '{}') from batches`)
	if diff := cmp.Diff(want, got); diff != "" {
		m.Error("events per statement (-want +got):\n" + diff)
	}
}

// Many arrive while one is being stored.
func TestDeliveriesThatArriveMeanwhileShareTheNextStatement(t *testing.T) {
	t.Parallel()
	big := make([]byte, 3<<19) // 1.5 MiB
	for name, c := range map[string]struct {
		payload  []byte
		arriving int
		want     []int
	}{
		"all in one":         {[]byte("{}"), 40, []int{1, 40}},
		"no more than 256":   {[]byte("{}"), 300, []int{1, 256, 44}},
		"no more than 4 MiB": {big, 3, []int{1, 2, 1}},
		"one that is larger than that goes alone": {make([]byte, 5<<20), 2, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailroom(t)
			m.countBatches()
			release := m.hold()
			var deliveries sync.WaitGroup
			deliver := func(id string) {
				deliveries.Go(func() {
					if o, err := m.inbox.Accept(t.Context(), idem.Event{ID: id, Type: "paid", Payload: c.payload}); o != idem.Pending {
						t.Errorf("Accept = %s, %v, want queued", o, err)
					}
				})
			}
			deliver("first")
			m.untilHeld()
			for n := range c.arriving {
				deliver(fmt.Sprint(n))
			}
			m.untilWaiting(1 + c.arriving)
			release()
			deliveries.Wait()
			m.wantBatches(c.want...)
		})
	}
}

func TestDeliveryThatIsAloneIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	var trips atomic.Int32
	m := openMailroom(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { countTrips(c, &trips) }))
	m.inbox.PollOnly = true // or workers were told in another round trip, after the answer
	for n := range 3 {      // statements are prepared by then
		m.wantAnswer(paid(fmt.Sprint("warm", n)), http.StatusOK)
		m.wantAnswer(paid(fmt.Sprint("warm", n)), http.StatusOK)
	}
	m.countBatches()
	for _, c := range []struct {
		name string
		want int32
	}{{"a new event: insert", 1}, {"a duplicate: insert, look", 2}} {
		before := trips.Load()
		m.wantAnswer(paid("e1"), http.StatusOK)
		if got := trips.Load() - before; got != c.want {
			t.Errorf("%s: %d round trips, want %d", c.name, got, c.want)
		}
	}
	m.wantBatches(1)
}

// One event is refused by the database: those that are stored with it are not.
func TestEventThatPostgresRefusesFailsAlone(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.exec(`create function refuse() returns trigger language plpgsql as $$ begin
			if new.event like '%bad' then raise exception 'no'; end if; return new; end $$;
		create trigger refuse before insert on idem_events for each row execute function refuse()`)
	release := m.hold()
	var deliveries sync.WaitGroup
	deliver := func(id string, want idem.Outcome) {
		deliveries.Go(func() {
			if o, err := m.inbox.Accept(t.Context(), letter(id, id, 0)); o != want || (err != nil) != (want == idem.Retrying) {
				t.Errorf("Accept(%s) = %s, %v, want %s", id, o, err, want)
			}
		})
	}
	deliver("first", idem.Pending)
	m.untilHeld()
	for n := range 10 {
		deliver(fmt.Sprint("good", n), idem.Pending)
	}
	deliver("bad", idem.Retrying)
	m.untilWaiting(12)
	release()
	deliveries.Wait()
	if n := queryOne[int](m.shop, `select count(*) from idem_events join idem_payloads using (event)`); n != 11 {
		t.Errorf("%d events are stored, want 11", n)
	}
	m.wantAnswer(paid("bad"), http.StatusServiceUnavailable)
	m.wantAnswer(paid("good"), http.StatusOK)
}

// Twins, duplicates of stored events and new ones may come in one batch.
func TestBatchTellsEachDeliveryItsOwnOutcome(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.store(letter("old", "o1", 0))
	release := m.hold()
	var mu sync.Mutex
	got := make(map[string][]idem.Outcome)
	var deliveries sync.WaitGroup
	deliver := func(ids ...string) {
		for _, id := range ids {
			deliveries.Go(func() {
				o, err := m.inbox.Accept(t.Context(), letter(id, id, 0))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got[id] = append(got[id], o)
			})
		}
	}
	deliver("first")
	m.untilHeld()
	deliver("old", "old", "new")
	m.untilWaiting(4)
	deliver("twin")
	m.untilWaiting(5)
	deliver("twin")
	m.untilWaiting(6)
	release()
	deliveries.Wait()
	counts := make(map[string]map[idem.Outcome]int)
	for id, all := range got {
		counts[id] = make(map[idem.Outcome]int)
		for _, o := range all {
			counts[id][o]++
		}
	}
	want := map[string]map[idem.Outcome]int{
		"first": {idem.Pending: 1},
		"old":   {idem.Duplicate: 2},
		"new":   {idem.Pending: 1},
		"twin":  {idem.Pending: 1, idem.Duplicate: 1},
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

// Postgres is far away, or slow: one statement is under way for long.
func TestDeliveriesDoNotWaitForASlowStatement(t *testing.T) {
	t.Parallel()
	m := openMailroom(t, poolOf(t, 8))
	release := m.hold()
	var deliveries sync.WaitGroup
	for n := range 2 {
		deliveries.Go(func() {
			id := fmt.Sprint("e", n)
			if outcome, err := m.inbox.Accept(t.Context(), letter(id, "o1", 0)); outcome != idem.Pending || err != nil {
				t.Errorf("Accept of %s = %s, %v, want queued", id, outcome, err)
			}
		})
		m.until(`select count(*) = $1 from pg_locks where relation = 'idem_payloads'::regclass and not granted`, n+1)
	}
	release()
	deliveries.Wait()
	for _, id := range []string{"e0", "e1"} {
		m.wantState(id, idem.StatePending)
	}
}
