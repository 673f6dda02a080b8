package idem_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Nobody polls here, and nobody but this test notifies: its Postgres is its own.
func TestWorkersAreToldOfWhatAnotherProcessStores(t *testing.T) {
	t.Parallel()
	cluster := &idemtest.Cluster{}
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
	other := openPool(t, cluster.URL(), func(*pgxpool.Config) {})
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

	const listeners = `select pid from pg_stat_activity where query = 'listen "idem_inbox"' and state = 'idle'`
	for range 2 {
		m.until(`select exists (` + listeners + `)`)
		lost := queryOne[int](m, listeners)
		m.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, lost))
		m.until(`select exists (`+listeners+` and pid <> $1)`, lost)
		storeElsewhere()
	}

	if _, err := other.Exec(t.Context(), `select 1`); err != nil {
		t.Error(err)
	}
	n := queryOne[int](m, `select count(*) from (`+listeners+`) l`)
	if n != 1 {
		t.Errorf("%d connections listen, want 1", n)
	}
}

func TestConnectionThatListensIsClosedWhenRunReturns(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	stop := m.start(m.inbox)
	const listening = `from pg_stat_activity where application_name = current_setting('application_name') and query = 'listen "idem_inbox"'`
	m.until(`select count(*) = 1 ` + listening)
	stop()
	m.until(`select count(*) = 0 ` + listening)
}

func TestPollOnlyDoesWithoutListen(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		const sessions = `select count(*) from pg_stat_activity
			where application_name = current_setting('application_name') and query ilike 'listen%'`
		if n := queryOne[int](m, sessions); n != 0 {
			t.Errorf("%d connections listen, want none", n)
		}
		return pay(ctx, tx, n)
	})
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
