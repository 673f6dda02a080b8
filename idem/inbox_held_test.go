package idem_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// holdRows begins to store events elsewhere, in a transaction that end ends.
func (s *app) holdRows(ids ...string) (end func(how string)) {
	s.Helper()
	conn, err := pgx.ConnectConfig(s.Context(), s.pool.Config().ConnConfig)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec := func(sql string, args ...any) {
		if _, err := conn.Exec(s.Context(), sql, args...); err != nil {
			s.Fatal(err)
		}
	}
	exec(`begin`)
	exec(`insert into idem_events (event, type, key, state) select 'notes//' || id, 'paid', '', 'done' from unnest($1::text[]) id`, ids)
	return func(how string) { exec(how) }
}

// Twenty of sixty deliveries in one statement are of events that another process is
// storing, and does not finish.
func TestHeldEventsKeepNoOtherWaiting(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]idem.Outcome{"commit": idem.Duplicate, "rollback": idem.Pending} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			var held, free []string
			for n := range 60 {
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
					if o, err := m.inbox.Accept(t.Context(), letter(id, id, 0)); o != want || err != nil {
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
					o, _ := m.inbox.Accept(t.Context(), letter(id, id, 0))
					for !o.Acknowledged() { // as the provider does after a 503
						o, _ = m.inbox.Accept(t.Context(), letter(id, id, 0))
					}
					if o != want {
						t.Errorf("Accept(%s) = %s, want %s", id, o, want)
					}
				})
			}
			m.untilWaiting(60)
			release()
			innocent.Wait()
			if n := queryOne[int](m, `select count(*) from idem_events`); n != len(free)+1 {
				t.Errorf("%d events are stored while the others are held, want %d", n, len(free)+1)
			}
			deliver(&innocent, "later", idem.Pending)
			innocent.Wait()
			end(how)
			all.Wait()
			if n := queryOne[int](m, `select count(*) from idem_events`); n != 62 {
				t.Errorf("%d events are stored, want 62", n)
			}
		})
	}
}
