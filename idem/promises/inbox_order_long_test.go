//go:build long

package promises_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/paghooks/paghooks/idem"
)

func TestKeysOfWhichSomeAreBlockedStarveNobody(t *testing.T) {
	t.Parallel()
	const keys, blocked = 200, 20
	m := newInboxApp(t)
	m.Inbox.Workers = 4
	m.On(pay)
	var deliveries sync.WaitGroup
	for n := range 50 {
		deliveries.Go(func() {
			for key := n; key < keys; key += 50 {
				m.Store(letter(fmt.Sprintf("%d-1", key), fmt.Sprint(key), 1), letter(fmt.Sprintf("%d-2", key), fmt.Sprint(key), 2))
			}
		})
	}
	deliveries.Wait()
	// Half of the blocked keys wait for a retry, half for somebody to act.
	m.Exec(`update idem_payloads set due_at = now() + interval '1 hour'
		where event in (select event from idem_events where key in (select n::text from generate_series(0, 99, 10) n) and event like '%-1')`)
	m.Exec(`with parked as (update idem_events set state = 'parked'
			where key in (select n::text from generate_series(100, 199, 10) n) and event like '%-1' returning event)
		update idem_payloads set due_at = null where event in (select event from parked)`)
	m.Start(m.Inbox)
	for range 2 * (keys - blocked) {
		m.WantWorked(idem.Done)
	}
	if n := queryOne[int](m, `select count(*) from idem_events where state <> 'done' and key like '%0'`); n != 2*blocked {
		t.Errorf("%d events of blocked keys are left, want %d", n, 2*blocked)
	}
}

// Ten of thirty deliveries in one statement are of events that another process is
// storing, and does not finish.
func TestHeldEventsKeepNoOtherWaiting(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]idem.Outcome{"commit": idem.Duplicate, "rollback": idem.Pending} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			var held, free []string
			for n := range 30 {
				if id := fmt.Sprintf("e%02d", n); n%3 == 0 {
					held = append(held, id)
				} else {
					free = append(free, id)
				}
			}
			end := m.holdRows(held...)
			release := m.hold()
			var all, innocent sync.WaitGroup
			deliver := func(of *sync.WaitGroup, id string, want idem.Outcome) {
				of.Go(func() {
					if o, err := m.Inbox.Accept(t.Context(), letter(id, id, 0)); o != want || err != nil {
						t.Errorf("Accept(%s) = %s, %v, want %s", id, o, err, want)
					}
				})
			}
			deliver(&innocent, "first", idem.Pending)
			m.untilHeld()
			for _, id := range free {
				deliver(&innocent, id, idem.Pending)
			}
			for _, id := range held {
				all.Go(func() {
					o, _ := m.Inbox.Accept(t.Context(), letter(id, id, 0))
					for !o.Acknowledged() { // as the provider does after a 503
						o, _ = m.Inbox.Accept(t.Context(), letter(id, id, 0))
					}
					if o != want {
						t.Errorf("Accept(%s) = %s, want %s", id, o, want)
					}
				})
			}
			m.untilWaiting(30)
			release()
			innocent.Wait()
			if n := queryOne[int](m, `select count(*) from idem_events`); n != len(free)+1 {
				t.Errorf("%d events are stored while the others are held, want %d", n, len(free)+1)
			}
			deliver(&innocent, "later", idem.Pending)
			innocent.Wait()
			end(how)
			all.Wait()
			if n := queryOne[int](m, `select count(*) from idem_events`); n != 32 {
				t.Errorf("%d events are stored, want 32", n)
			}
		})
	}
}
