package idem_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/postgres"
)

// Nobody polls here, and nobody but this test notifies: its Postgres is its own.
func TestWorkersAreToldOfWhatAnotherProcessStores(t *testing.T) {
	t.Parallel()
	cluster := &postgres.Cluster{}
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	m := openInboxApp(t, openPool(t, cluster.URL(), func(*pgxpool.Config) {}))
	m.on(pay)
	other := openPool(t, cluster.URL(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "other" })
	worker := m.newInbox(other)
	worker.Poll = time.Hour
	m.start(worker)
	next := 0
	storeElsewhere := func() {
		t.Helper()
		for range 5 {
			m.store(letter(fmt.Sprint(next), fmt.Sprint(next), 0))
			next++
			m.wantWorked(idem.Done)
		}
	}
	storeElsewhere()

	for range 2 {
		lost := m.beside(other)
		m.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, lost))
		for deadline := time.Now().Add(patience); m.beside(other) == lost; pause() {
			if time.Now().After(deadline) {
				t.Fatal("nothing listens again")
			}
		}
		storeElsewhere()
	}
}

// beside waits until one connection is beside those of a pool that is not in use, and
// returns its process.
func (s *app) beside(pool *pgxpool.Pool) int {
	s.Helper()
	last := 0 // found twice: the pool may open a connection while it is looked at
	for deadline := time.Now().Add(patience); ; pause() {
		own, idle := []uint32{}, pool.AcquireAllIdle(s.Context())
		for _, c := range idle {
			own = append(own, c.Conn().PgConn().PID())
		}
		all := int(pool.Stat().TotalConns()) == len(own)
		found := queryOne[[]int](s, `select array_agg(pid) from pg_stat_activity where application_name = $1 and pid <> all ($2)`,
			pool.Config().ConnConfig.RuntimeParams["application_name"], own)
		for _, c := range idle {
			c.Release()
		}
		if all && len(found) == 1 && found[0] == last {
			return last
		}
		last = 0
		if all && len(found) == 1 {
			last = found[0]
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d connections are beside the pool, want 1", len(found))
		}
	}
}

func TestConnectionBesideThePoolIsClosedWhenRunReturns(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	name := t.Name()
	worker := m.newInbox(openPool(t, m.pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = name }))
	worker.Poll = time.Hour
	stop := m.start(worker)
	pid := m.beside(worker.Pool())
	stop()
	m.until(`select not exists (select from pg_stat_activity where pid = $1)`, pid)
	m.until(`select not exists (select from idem_workers)`)
}

func TestPollOnlyDoesWithoutListen(t *testing.T) {
	t.Parallel()
	heard := make(listens, 10)
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = heard }))
	m.on(pay)
	m.inbox.PollOnly = true
	m.start(m.inbox)
	other := m.newInbox(m.pool)
	other.PollOnly = true
	for n := range 3 {
		if o, err := other.Accept(t.Context(), letter(fmt.Sprint(n), "o1", 0)); o != idem.Pending {
			t.Fatal(o, err)
		}
		m.wantWorked(idem.Done)
	}
	m.wantEffects(3)
	m.until(`select exists (select from idem_workers where seen_at > started_at + interval '1 second')`) // there is a connection for that
	if len(heard) > 0 {
		t.Error("a connection listens")
	}
}

// listens has an element for each connection that listens.
type listens chan bool

func (listens) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, listens(nil), strings.HasPrefix(data.SQL, "listen"))
}

func (l listens) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if ctx.Value(listens(nil)) == true && data.Err == nil {
		l <- true
	}
}

func TestWorkersWakeForWhatTheirOwnProcessStores(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	m.inbox.Poll, m.inbox.PollOnly = time.Hour, true // so that nothing else wakes them
	m.start(m.inbox)
	for n := range 5 {
		m.store(letter(fmt.Sprint(n), fmt.Sprint(n%2), 0))
		m.wantWorked(idem.Done)
	}
}

// One wake-up is enough for all: who takes as much as it can wakes the next.
func TestRunsOfOneInboxWakeEachOther(t *testing.T) {
	t.Parallel()
	const runs, workers, events = 3, 2, 24
	m := openInboxApp(t, poolOf(t, runs*workers+2))
	m.inbox.Workers = workers
	m.inbox.Poll, m.inbox.PollOnly = time.Hour, true
	var mu sync.Mutex
	entered, all := 0, make(chan struct{})
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		mu.Lock()
		if entered++; entered == runs*workers {
			close(all)
		}
		mu.Unlock()
		<-all // every worker of every Run is at work
		return pay(ctx, tx, n)
	})
	for range runs {
		m.start(m.inbox)
	}
	var together []idem.Event
	for n := range events - 1 {
		together = append(together, letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	m.storeTogether(together...) // and a first one: two wake-ups for three
	for range events {
		m.wantWorked(idem.Done)
	}
	m.wantEffects(events)
}

// Claims look for what is due after what they have found before. An event that becomes
// due when a long handler ends is not due since that began.
func TestNextEventOfAnEntityIsDueWhenTheFirstIsDone(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.Workers = 2
	m.exec(`
		create table promoted (event text, due_at timestamptz);
		create table ended (at timestamptz);
		create function note() returns trigger language plpgsql as $$ begin
			insert into promoted values (new.event, new.due_at);
			return null;
		end $$;
		create trigger note after update on idem_payloads for each row when (old.due_at is null and new.due_at is not null) execute function note()`)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "e1" {
			if _, err := tx.Exec(ctx, `insert into ended values (clock_timestamp())`); err != nil {
				return err
			}
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("e1", "o1", 1), letter("e2", "o1", 2))
	m.drain(2)
	if !queryOne[bool](m, `select bool_and(due_at >= (select at from ended)) from promoted where event = 'notes//e2'`) {
		t.Error("e2 is due before e1 is done: claims that have looked further do not see it for seconds")
	}
}
