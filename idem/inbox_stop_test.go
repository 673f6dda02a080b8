package idem_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

func TestRunReturnsOnceRunningHandlersAreDone(t *testing.T) {
	t.Parallel()
	const workers, events = 2, 20
	m := openInboxApp(t, poolOf(t, workers+2))
	m.inbox.Workers = workers
	ctx, stop := context.WithCancel(t.Context())
	entered, release, ended := make(chan struct{}, events), make(chan struct{}), make(chan error, 1)
	var begun atomic.Int32
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if begun.Add(1) > 10 {
			entered <- struct{}{}
			<-release
			if err := ctx.Err(); err != nil {
				t.Errorf("the handler's context ended with that of Run: %v", err)
			}
		}
		return pay(ctx, tx, n)
	})
	for n := range events {
		m.store(letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	go func() { ended <- m.inbox.Run(ctx) }()
	for range workers {
		<-entered
	}
	stop()
	select {
	case err := <-ended:
		t.Errorf("Run returned %v while handlers ran", err)
	default:
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	done := int(begun.Load())
	if done != 10+workers {
		t.Errorf("%d events were begun, want %d: none after the stop", done, 10+workers)
	}
	m.wantEffects(done)
	const left = `select count(*) from idem_events e where state = 'pending' and crashes = 0 and attempts = 0 and claimed_by is null`
	if n := queryOne[int](m, left); n != events-done {
		t.Errorf("%d events wait for the next worker, want %d", n, events-done)
	}
	m.start(m.inbox) // again
	m.until(`select not exists (select from idem_payloads)`)
	m.wantEffects(events)
}

func TestStopTimeoutCancelsHandlersAndCountsNothing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, pgx.Tx) error{
		"waits for its context": func(ctx context.Context, _ pgx.Tx) error { <-ctx.Done(); return ctx.Err() },
		"waits in SQL": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select pg_sleep(60)`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.inbox.StopTimeout = 10 * time.Millisecond
			ctx, stop := context.WithCancel(t.Context())
			runs := 0
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if runs++; runs > 1 {
					return nil
				}
				stop()
				return wait(ctx, tx)
			})
			m.store(letter("e1", "o1", 1))
			if err := m.inbox.Run(ctx); err != nil {
				t.Errorf("Run = %v", err)
			}
			m.wantEffects(0)
			m.wantRow("e1", `(state, attempts, crashes, claimed_by)`, `(pending,0,0,)`)
			m.wantWorked(idem.Retrying)
			m.start(m.inbox)
			m.wantWorked(idem.Done)
			m.wantEffects(1)
		})
	}
}

func TestHandlerThatDoesNotReturnIsAnErrorOfRun(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.StopTimeout = 10 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	release := make(chan struct{})
	var runs atomic.Int32
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil || runs.Add(1) > 1 {
			return err
		}
		stop()
		<-release
		return nil
	})
	m.store(letter("e1", "o1", 1))
	err := m.inbox.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
		t.Errorf("Run = %v, want an error that tells of the handler", err)
	}
	m.start(m.inbox)            // the next one goes on
	m.wantWorked(idem.Retrying) // by the first Run
	m.store(letter("e2", "o2", 1))
	m.wantWorked(idem.Done, idem.Done)
	close(release)
	m.until(`select not exists (select from idem_payloads)`)
	m.wantEffects(2)
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	for name, set := range map[string]func(*idem.Inbox){
		"Workers":     func(i *idem.Inbox) { i.Workers = 0 },
		"Timeout":     func(i *idem.Inbox) { i.Timeout = 0 },
		"MaxAttempts": func(i *idem.Inbox) { i.MaxAttempts = -1 },
		"MaxCrashes":  func(i *idem.Inbox) { i.MaxCrashes = 0 },
		"Poll":        func(i *idem.Inbox) { i.Poll = 0 },
		"Backoff":     func(i *idem.Inbox) { i.Backoff = nil },
	} {
		i := m.newInbox(m.pool)
		set(i)
		for _, err := range []error{i.Run(t.Context()), i.Drain(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want an error that names it", name, err)
			}
		}
	}
}

func TestRunThatIsStoppedBeforeItStartsDoesNothing(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(func(context.Context, pgx.Tx, *note) error { t.Error("worked"); return nil })
	m.store(letter("e1", "o1", 1))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := m.inbox.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
	m.wantRow("e1", `(state, claimed_by)`, `(pending,)`)
}

// Postgres is unavailable when workers start, and when they stop.
func TestRunGoesOnWhenPostgresIsBack(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	m.store(letter("e1", "o1", 1))
	var down atomic.Bool
	down.Store(true)
	stop := m.start(m.newInbox(openPool(t, m.pool.Config().ConnString(), func(c *pgxpool.Config) { takeDown(c, &down) })))
	for !strings.Contains(m.logged(), "cannot reach the events") {
		pause()
	}
	down.Store(false)
	m.wantWorked(idem.Done)
	down.Store(true)
	stop()
	m.wantEffects(1)
}

// Postgres is gone under a handler, for good: its worker is not held for ever, and
// what it held is the next process's.
func TestWorkerGivesUpWhatItCannotRecord(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	var down atomic.Bool
	m.on(func(_ context.Context, tx pgx.Tx, _ *note) error {
		down.Store(true)
		return tx.Conn().PgConn().Conn().Close()
	})
	m.store(letter("e1", "o1", 1))
	worker := m.newInbox(openPool(t, m.pool.Config().ConnString(), func(c *pgxpool.Config) { takeDown(c, &down) }))
	stop := m.start(worker)
	o := m.next()
	if o.Outcome != idem.Retrying || !strings.Contains(o.Err.Error(), "the failure could not be recorded, and is counted once Postgres answers") {
		t.Errorf("outcome %s, %v, want retrying, counted later", o.Outcome, o.Err)
	}
	stop()
	m.wantRow("e1", `(state, attempts, claimed_by is null)`, `(pending,0,f)`)
}
