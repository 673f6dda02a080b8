package promises_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// The primary became read-only: a full disk of its provider's, say. Each failing statement would replace all
// connections, and write a line.
func TestAReadOnlyPrimaryCostsFewLinesAndConnections(t *testing.T) {
	t.Parallel()
	const deliveries = 30
	var connected atomic.Int32
	var readOnly atomic.Bool
	s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.MaxConns = 4
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			connected.Add(1)
			if !readOnly.Load() {
				return nil
			}
			_, err := conn.Exec(ctx, `set default_transaction_read_only = on`)
			return err
		}
	}))
	s.On(pay)
	var open [4]*pgxpool.Conn
	acquireAll := func() {
		t.Helper()
		for n := range open {
			conn, err := s.Pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			open[n] = conn
		}
		for _, conn := range open {
			conn.Release()
		}
	}
	readOnly.Store(true)
	s.Pool.Reset()
	acquireAll()
	connected.Store(0)
	for range deliveries {
		s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	}
	if n := int(connected.Load()); n > deliveries-len(open) { // those that were there are not replaced because of another one
		t.Errorf("%d deliveries have made %d connections, want %d", deliveries, n, deliveries-len(open))
	}
	if n := strings.Count(s.Logged(), "level=ERROR"); n != 1 {
		t.Errorf("%d deliveries have written %d lines, want one:\n%s", deliveries, n, s.Logged())
	}
	readOnly.Store(false)
	for range 4 { // each of the pool's connections is asked once at most
		s.Deliver(paid("e1"))
	}
	s.WantAnswer(paid("e1"), http.StatusOK)
}

// A trigger of the database's administrator names whom it likes.
func TestWordsOfATriggerOnTheTablesAreNotLogged(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'maria@example.com is on the list'; end $$;
		create trigger refuses before insert on idem_events for each row execute function refuse()`)
	s.On(pay)
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	if log := s.Logged(); strings.Contains(log, "maria") || !strings.Contains(log, "a trigger refuses it") || !strings.Contains(log, "P0001") {
		t.Errorf("the log says\n%s", log)
	}
}

// Who stops an action while Postgres commits it would be told that it failed.
func TestAnActionIsNotCanceledDuringItsCommit(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.Exec(`create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
		create constraint trigger waits after update on idem_events deferrable initially deferred for each row
			when (new.state = 'discarded') execute function wait()`)
	s.Store(letter("e1", "o1", 1))
	front, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := front.Exec(t.Context(), `select pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	discarded := make(chan error, 1)
	go func() {
		n, err := s.Inbox.Discard(ctx, idem.Filter{IDs: []string{"e1"}, States: []idem.State{idem.StatePending}}, "a test")
		if err == nil && n != 1 {
			err = errors.New("nothing is discarded")
		}
		discarded <- err
	}()
	s.Until(blocked)
	cancel()
	if err := front.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-discarded; err != nil {
		t.Error(err)
	}
	s.WantState("e1", idem.StateDiscarded)
}
