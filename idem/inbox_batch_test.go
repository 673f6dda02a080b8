package idem_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

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
			m := newInboxApp(t)
			m.countBatches()
			release := m.hold()
			var deliveries sync.WaitGroup
			deliver := func(id string) {
				deliveries.Go(func() {
					if o, err := m.inbox.Accept(t.Context(), idem.Event{ID: id, Type: "paid", Payload: c.payload}); o != idem.Pending {
						t.Errorf("Accept = %s, %v, want pending", o, err)
					}
				})
			}
			deliver("first")
			m.untilHeld()
			for n := range c.arriving {
				deliver(fmt.Sprint(n))
			}
			m.untilWaiting(c.arriving)
			release()
			deliveries.Wait()
			m.wantBatches(c.want...)
		})
	}
}

func TestDeliveryThatIsAloneIsOneStatement(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { proxy.Through(c); c.MaxConns = 1 }))
	m.inbox.PollOnly = true // or workers were notified in another statement, after the answer
	for n := range 3 {      // statements are prepared by then
		m.wantAnswer(paid(fmt.Sprint("warm", n)), http.StatusOK)
		m.wantAnswer(paid(fmt.Sprint("warm", n)), http.StatusOK)
	}
	m.countBatches()
	for _, c := range []struct {
		name string
		want int
	}{{"a new event", 1}, {"a duplicate", 1}} {
		proxy.Arm(pgproxy.Fault{})
		status, answer := m.deliver(paid("e1"))
		steps, _ := proxy.Disarm()
		if status != http.StatusOK {
			t.Errorf("answered %d %s", status, answer)
		}
		trips := 0
		for _, step := range steps {
			if step.Message == "Sync" || step.Message == "Query" {
				trips++
			}
		}
		if trips != c.want {
			t.Errorf("%s: %d round trips, want %d: %v", c.name, trips, c.want, steps)
		}
	}
	m.wantBatches(1)
}

// One event is refused by the database: those that are stored with it are not.
func TestEventThatPostgresRefusesFailsAlone(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
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
	m.untilWaiting(11)
	release()
	deliveries.Wait()
	if n := queryOne[int](m, `select count(*) from idem_events join idem_payloads using (event)`); n != 11 {
		t.Errorf("%d events are stored, want 11", n)
	}
	m.wantAnswer(paid("bad"), http.StatusServiceUnavailable)
	m.wantAnswer(paid("good"), http.StatusOK)
}

// Concurrent duplicates, duplicates of stored events and new ones may come in one batch.
func TestBatchTellsEachDeliveryItsOwnOutcome(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
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
	m.untilWaiting(3)
	deliver("same")
	m.untilWaiting(4)
	deliver("same")
	m.untilWaiting(5)
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
		"same":  {idem.Pending: 1, idem.Duplicate: 1},
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}
