package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// mending is a handler that cannot do what is bad until it is mended.
type mending struct {
	mended atomic.Bool

	mu   sync.Mutex
	done []string
}

func (m *mending) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	if !m.mended.Load() {
		return refuseBad(ctx, tx, n)
	}
	idem.AfterCommit(ctx, func(context.Context) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done = append(m.done, n.ID)
	})
	return pay(ctx, tx, n)
}

func (o *office) wantRequeued(db idem.DB, f idem.Filter, want int64) {
	o.shop.Helper()
	if n, err := o.Requeue(o.shop.Context(), db, f); n != want || err != nil {
		o.shop.Errorf("Requeue = %d, %v, want %d", n, err, want)
	}
}

func TestRequeuedEventKeepsItsPlaceInTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	s.on(m.handle)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "a"), booking("a2", "a"), booking("bad3", "a"), booking("a4", "a"))
	o.work(1)
	m.mended.Store(true)
	o.wantRequeued(s.pool, idem.Filter{IDs: []string{"bad1"}}, 1)
	o.work(4)
	if diff := cmp.Diff([]string{"bad1", "a2", "bad3", "a4"}, m.done); diff != "" {
		t.Error("done (-want +got):\n" + diff)
	}
	s.wantEffects(4)
}

// Without a key an event waits for no other, before and after.
func TestRequeuedEventWithoutAKeyWaitsForNoOther(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	s.on(m.handle)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", ""), booking("bad2", ""))
	o.work(2)
	s.wantQueues("notes//bad1", "notes//bad2")
	o.wantRequeued(s.pool, idem.Filter{IDs: []string{"bad2"}}, 1)
	s.wantQueues("notes//bad1", "notes//bad2")
	m.mended.Store(true)
	o.work(1)
	s.wantState("bad1", idem.StateParked)
	s.wantState("bad2", idem.StateDone)
}

func (s *shop) wantQueues(want ...string) {
	s.Helper()
	got := queryOne[[]string](s, `select array_agg(queue order by queue) from idem_payloads`)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error("queues (-want +got):\n" + diff)
	}
}

func TestRequeueTakesOneSomeOrAll(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	s.on(m.handle)
	o := newOffice(s, s.pool)
	for i := range 6 {
		o.queue(in(fmt.Sprint("shop/", i%2), booking(fmt.Sprint("bad", i), fmt.Sprint(i))))
	}
	o.work(6)
	m.mended.Store(true)
	o.wantRequeued(s.pool, idem.Filter{IDs: []string{}}, 0)
	o.wantRequeued(s.pool, idem.Filter{IDs: []string{"bad0"}}, 1)
	o.wantRequeued(s.pool, idem.Filter{IDs: []string{"bad0"}}, 0) // it is pending now
	o.wantRequeued(s.pool, idem.Filter{Scopes: []string{"shop/1"}}, 3)
	o.wantRequeued(s.pool, idem.Filter{}, 2)
	o.work(6)
	s.wantEffects(6)
}

func TestRequeueTakesEventsOfEveryStateThatIsNotDone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	broken := true
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if broken {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	o := newOffice(s, s.pool)
	s.wantAnswer(paid("retrying"), http.StatusServiceUnavailable)
	s.processor.ParkAfter = 1
	s.wantAnswer(paid("failed"), http.StatusOK)
	s.wantAnswer(`{"id":"unhandled","type":"new","order":"o1"}`, http.StatusOK)
	o.queue(booking("pending", "o2")) // due in an hour
	o.work(1)
	s.exec(`update idem_events set crashes = 2 where state = 'pending'`)
	s.exec(`update idem_payloads set received_at = null where event = 'notes//unhandled'`) // as version 1 stored it
	broken = false
	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "paid", pay)
		idem.Handle(&n.Routes, "new", pay)
	})
	o = newOffice(s, s.pool)
	o.wantRequeued(s.pool, idem.Filter{States: []idem.State{
		idem.StateRetrying, idem.StateParked, idem.StateUnhandled, idem.StatePending, idem.StateDone, idem.StateDiscarded,
	}}, 4)
	for _, stored := range s.listed(idem.Filter{States: []idem.State{idem.StatePending}}) {
		if stored.Attempts != 0 || stored.Crashes != 0 || !stored.DueAt.IsZero() {
			t.Errorf("requeued as %+v, want it as if it had just arrived", stored)
		}
	}
	o.work(4)
	s.wantEffects(4)
}

func TestRequeueInATransactionBeginsWhenThatIsCommitted(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s, m := openShop(t, openPool(t, url, func(*poolConfig) {})), &mending{}
	s.on(m.handle)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "a"), booking("bad2", "b"))
	o.work(2)
	m.mended.Store(true)

	other := newOffice(s, openPool(t, url, func(*poolConfig) {})) // another process, which sees what is committed
	other.Poll = time.Hour
	stop := other.start()
	defer stop()

	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		o.wantRequeued(tx, idem.Filter{}, 2)
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	s.wantState("bad1", idem.StateParked)
	err = pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		o.wantRequeued(tx, idem.Filter{IDs: []string{"bad1"}}, 1)
		s.wantState("bad1", idem.StateParked) // for all others
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen := other.next(); seen.Outcome != idem.Done || seen.Event.ID != "bad1" {
		t.Errorf("the other process's outcome is %s of %s", seen.Outcome, seen.Event.ID)
	}
	s.wantEffects(1)
	s.wantState("bad2", idem.StateParked)
}

// Workers look again after a while in any case: that they need not wait for it
// shows in what Postgres sends to those who listen, once it is committed.
func TestRequeueTellsWorkersAtCommitAndOnlyThen(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openShop(t, openPool(t, url, func(*poolConfig) {}))
	s.on(refuseBad)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "a"))
	o.work(1)
	listener, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close(context.Background())
	if _, err := listener.Exec(t.Context(), `listen idem_inbox`); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	requeue := func(end func(pgx.Tx) error) {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o.wantRequeued(tx, idem.Filter{}, 1)
		if _, err := tx.Exec(t.Context(), `select pg_notify('idem_inbox', 'in the same transaction')`); err != nil {
			t.Fatal(err)
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	requeue(func(tx pgx.Tx) error { return tx.Rollback(t.Context()) })
	if _, err := conn.Exec(t.Context(), `select pg_notify('idem_inbox', 'rolled back')`); err != nil {
		t.Fatal(err)
	}
	requeue(func(tx pgx.Tx) error { return tx.Commit(t.Context()) })

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var heard []string
	for len(heard) < 3 {
		n, err := listener.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n.PID == conn.PgConn().PID() { // other tests use the same database
			heard = append(heard, n.Payload)
		}
	}
	if diff := cmp.Diff([]string{"rolled back", "", "in the same transaction"}, heard); diff != "" {
		t.Error("notifications (-want +got):\n" + diff)
	}
}

func TestOperationsSayWhatFailed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := newOffice(s, s.pool)
	s.exec(`drop table idem_payloads`)
	for name, operate := range map[string]func() error{
		"idem: requeueing events": func() error { _, err := o.Requeue(t.Context(), s.pool, idem.Filter{}); return err },
		"idem: discarding events": func() error {
			_, err := o.Discard(t.Context(), s.pool, idem.Filter{IDs: []string{"e1"}}, "test")
			return err
		},
		"idem: listing events": func() (err error) {
			for _, err = range o.List(t.Context(), idem.Filter{}) {
			}
			return err
		},
		"idem: listing blocked keys": func() error { _, err := o.Blocked(t.Context()); return err },
		"idem: counting events":      func() error { _, err := o.Stats(t.Context()); return err },
	} {
		want := name + ": the tables are missing: call idem.Migrate at start, with the same search_path: "
		if err := operate(); err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("the error is %v\nwant %s…", err, want)
		}
	}
}

// A worker died with it, and the operator knows better.
func TestRequeuedEventIsNoSuspect(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	o := newOffice(s, s.pool)
	o.queue(booking("e1", "a"))
	s.exec(`update idem_events set crashes = 2`)
	s.exec(`insert into idem_claims select event, now() - interval '1 minute' from idem_events`)
	o.wantRequeued(s.pool, idem.Filter{States: []idem.State{idem.StatePending}}, 1)
	o.work(1)
	s.wantEffects(1)
	if crashes := queryOne[*int](s, `select crashes from idem_events`); crashes != nil {
		t.Errorf("it has %d crashes", *crashes)
	}
}
