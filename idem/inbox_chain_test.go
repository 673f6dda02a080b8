package idem_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// chained is a mailroom whose one worker finds events of different keys waiting,
// so that it begins each with the COMMIT of the one before it. Its one
// connection is the worker's, and nobody waits for a lock.
type chained struct{ *mailroom }

func newChained(t *testing.T, ids ...string) *chained {
	t.Helper()
	c := openChained(t, func(c *poolConfig) { c.ConnConfig.RuntimeParams["lock_timeout"] = "1s" })
	c.storeEach(ids...)
	return c
}

func openChained(t *testing.T, set func(*poolConfig)) *chained {
	t.Helper()
	c := &chained{openMailroom(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { c.MaxConns = 1; set(c) }))}
	c.inbox.PollOnly = true
	return c
}

// storeEach stores events of a key each.
func (c *chained) storeEach(ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.store(letter(id, id, 0))
	}
}

// work has the worker work on all that is pending, or until ctx ends, and
// returns what it settled: "a is handled".
func (c *chained) work(ctx context.Context) (settled []string) {
	c.Helper()
	if err := idem.WorkOff(ctx, c.inbox, 100); err != nil {
		c.Errorf("Run = %v\n%s", err, c.logged())
	}
	for len(c.worked) > 0 {
		o := <-c.worked
		settled = append(settled, o.Event.ID+" is "+string(o.Outcome))
	}
	return settled
}

func (c *chained) wantWork(want ...string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	if diff := cmp.Diff(want, c.work(ctx)); diff != "" {
		c.Errorf("what the worker settled (-want +got):\n%s\n%s", diff, c.logged())
	}
}

// wantEachOnce checks that the events have one effect each, and nothing is left
// of them to work on.
func (c *chained) wantEachOnce(ids ...string) {
	c.Helper()
	got := queryOne[[]string](c.shop, `select coalesce(array_agg(event order by event), '{}') from effects`)
	if diff := cmp.Diff(ids, got); diff != "" {
		c.Error("effects (-want +got):\n" + diff)
	}
	if left := queryOne[int](c.shop, `select count(*) from idem_events where state <> 'done'`); left > 0 {
		c.Errorf("%d events are not done", left)
	}
	c.wantNoClaim()
}

func (c *chained) wantNoClaim() {
	c.Helper()
	if n := queryOne[int](c.shop, `select count(*) from idem_claims`); n > 0 {
		c.Errorf("%d claims are left", n)
	}
}

func TestRoundTripsPerEventThatFollowsAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler  idem.Handler[*note]
		perEvent int32
	}{
		"a statement, and the commit that begins the next": {pay, 2},
		"only that commit, if the statement is queued":     {payQueued, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const claim, begin, end = 1, 1, 1 // all claims, the first event, and the claims again
			var trips atomic.Int32
			m := openChained(t, func(c *poolConfig) { countTrips(c, &trips) })
			m.on(c.handler)
			m.storeEach("warm 1", "warm 2") // statements are prepared by then
			m.wantWork("warm 1 is handled", "warm 2 is handled")
			var want []string
			for n := range 20 {
				id := fmt.Sprintf("%02d", n)
				m.storeEach(id)
				want = append(want, id+" is handled")
			}
			before := trips.Load()
			m.wantWork(want...)
			if got, want := trips.Load()-before, claim+begin+20*c.perEvent+end; got != want {
				t.Errorf("20 events take %d round trips, want %d", got, want)
			}
			m.wantEffects(22)
		})
	}
}

// Run takes ahead for a worker that is quick, and that uses it.
func TestRunBeginsEventsWithTheCommitOfOthers(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	m := openMailroom(t, openPool(t, url, func(*poolConfig) {}))
	m.on(pay)
	proxy := new(pgproxy.Proxy)
	worker := m.newInbox(openPool(t, url, proxy.Through))
	worker.Workers, worker.PollOnly = 1, true
	m.start(worker)
	isChain := func(s pgproxy.Step) bool { return s.Statement == "commit and chain" }
	stored := 0
	for deadline, seen := time.Now().Add(patience), false; !seen; { // on a slow machine it may not be quick at once
		proxy.Arm(pgproxy.Fault{})
		for range 20 {
			stored++
			m.store(letter(fmt.Sprint(stored), fmt.Sprint(stored), 0))
		}
		m.until(`select not exists (select from idem_payloads)`)
		steps, _ := proxy.Disarm()
		if seen = slices.ContainsFunc(steps, isChain); !seen && time.Now().After(deadline) {
			t.Fatalf("%d events, and none was begun with the commit of another", stored)
		}
	}
	m.wantEffects(stored)
}

// The hook gets the connection, of which there is one.
func TestAfterCommitRunsBeforeTheNextEventBegins(t *testing.T) {
	t.Parallel()
	c := newChained(t, "a", "b", "c", "d")
	var log []string
	c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		log = append(log, n.ID)
		if n.ID != "b" { // which a hook comes before, and none behind
			idem.AfterCommit(ctx, func(ctx context.Context) {
				var done int
				err := c.pool.QueryRow(ctx, `select count(*) from idem_events where state = 'done'`).Scan(&done)
				log = append(log, fmt.Sprintf("after %s %d done, %v", n.ID, done, err))
			})
		}
		return pay(ctx, tx, n)
	})
	c.wantWork("a is handled", "b is handled", "c is handled", "d is handled")
	want := []string{"a", "after a 1 done, <nil>", "b", "c", "after c 3 done, <nil>", "d", "after d 4 done, <nil>"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error("handlers and hooks (-want +got):\n" + diff)
	}
	c.wantEachOnce("a", "b", "c", "d")
}

// The middle one of three fails, where it is committed and the last one begun.
func TestCommitThatFailsFailsItsOwnEventOnly(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]func(context.Context){
		"a constraint is checked at COMMIT":   func(ctx context.Context) { idem.ExecAtCommit(ctx, `insert into later values ('x')`) },
		"Postgres refuses a queued statement": func(ctx context.Context) { idem.ExecAtCommit(ctx, `select 1/0`) },
		"it refuses the second":               func(ctx context.Context) { idem.ExecAtCommit(ctx, `select 1`); idem.ExecAtCommit(ctx, `select 1/0`) },
		"a queued statement is no SQL":        func(ctx context.Context) { idem.ExecAtCommit(ctx, `insert in effects`) },
		"an argument does not fit":            func(ctx context.Context) { idem.ExecAtCommit(ctx, insertEffect, struct{}{}) },
		"a queued statement rolls back":       func(ctx context.Context) { idem.ExecAtCommit(ctx, `rollback`) },
		"a queued statement ends the session": func(ctx context.Context) { idem.ExecAtCommit(ctx, `select pg_terminate_backend(pg_backend_pid())`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChained(t, "a", "b", "c")
			c.exec(`create table effects_of (id text primary key); create table later (id text references effects_of deferrable initially deferred)`)
			runs := map[string]int{}
			c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if runs[n.ID]++; n.ID == "b" && runs[n.ID] == 1 {
					queue(ctx)
				}
				return pay(ctx, tx, n)
			})
			c.wantWork("a is handled", "b is failed", "c is handled")
			c.wantEffects(2)
			c.wantRow("b", `(state, crashes, claimed)`, `(pending,,)`)
			c.due()
			c.wantWork("b is handled")
			c.wantEachOnce("a", "b", "c")
			if diff := cmp.Diff(map[string]int{"a": 1, "b": 2, "c": 1}, runs); diff != "" {
				t.Error("runs of the handler (-want +got):\n" + diff)
			}
		})
	}
}

// due has what was put back for a moment wait no longer. By then Postgres has
// ended what held its row and its key, on a connection that is no more.
func (c *chained) due() {
	c.exec(`begin; set local lock_timeout = 0;
		update idem_events set due_at = null where state = 'pending'
			and (select pg_advisory_xact_lock(hashtextextended('notes//' || key, tableoid::bigint))) is not null;
		commit`)
}

// An event that is begun with the COMMIT of another one turns out to be nothing
// to work on. Its row is settled by another transaction: a lock would be told.
func TestFollowerThatNeedsNoWorkIsSettled(t *testing.T) {
	t.Parallel()
	for name, follower := range map[string]struct {
		event   idem.Event
		settled string
		state   idem.State
	}{
		"it has no handler":  {identify([]byte(`{"id":"b","type":"new","order":"b"}`)), "b is unhandled", idem.StateUnhandled},
		"it is ignored":      {identify([]byte(`{"id":"b","type":"viewed","order":"b"}`)), "b is handled", idem.StateDone},
		"it does not decode": {idem.Event{ID: "b", Type: "paid", Key: "b", Payload: []byte(`{"id":7}`)}, "b is parked", idem.StateParked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChained(t, "a", "c")
			c.store(follower.event)
			c.on(pay)
			c.notes.Ignore("viewed") // since it was stored
			c.wantWork("a is handled", follower.settled, "c is handled")
			c.wantState("b", follower.state)
			c.wantRow("b", `(crashes, claimed)`, `(,)`)
			c.wantEffects(2)
			c.wantNoClaim()
		})
	}
}
