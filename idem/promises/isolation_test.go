package promises_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// An inbox tries again every tenth of a second. The pool closes a connection whose
// transaction has failed, and making one takes longer than that.
func TestEventWhoseRowIsHeldCostsNoConnection(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	other := openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	s := openInboxApp(t, openPool(t, url, func(c *pgxpool.Config) { c.MaxConns = 1 }))
	held, err := other.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.Background()) }()
	if _, err := held.Exec(t.Context(), `insert into idem_events (event, type, key, state) values ('notes//e1', 'paid', 'o1', 'done')`); err != nil {
		t.Fatal(err)
	}
	before := s.Pool.Stat()
	accepted := make(chan error, 1)
	go func() {
		_, err := s.Inbox.Accept(s.Context(), letter("e1", "o1", 0))
		accepted <- err
	}()
	for s.Pool.Stat().AcquireCount() < before.AcquireCount()+5 {
		pause()
	}
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if n := s.Pool.Stat().NewConnsCount() - before.NewConnsCount(); n > 0 {
		t.Errorf("%d connections were made anew", n)
	}
}

// With PgBouncer's pool_mode=transaction each transaction may have another
// session, and many clients share few of them.
func TestTransactionPoolingWorks(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			url := idemtest.URL(t)
			pooler, err := pgproxy.NewPooler(t.Context(), url, 2)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := pooler.Close(); err != nil {
					t.Error(err)
				}
			})
			s := openApp(t, openPool(t, url, func(c *pgxpool.Config) {
				pooler.Through(c)
				c.MaxConns = 8
				c.ConnConfig.DefaultQueryExecMode = mode
			}))
			s.First.KeepPayloads = true
			var mu sync.Mutex
			backends := make(map[int]bool)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				var backend int
				var lockTimeout string
				err := tx.QueryRow(ctx, `select pg_backend_pid(), current_setting('lock_timeout')`).Scan(&backend, &lockTimeout)
				if err == nil && lockTimeout != "0" {
					err = errors.New("a lock_timeout is in effect: " + lockTimeout)
				}
				mu.Lock()
				backends[backend] = true
				mu.Unlock()
				return errors.Join(err, pay(ctx, tx, n))
			})
			var deliveries sync.WaitGroup
			for _, id := range []string{"e1", "e2", "e3", "e4", "e5", "e6"} {
				for range 2 {
					deliveries.Go(func() { s.WantAnswer(paid(id), http.StatusOK) })
				}
			}
			deliveries.Wait()
			// All may have run in one session: the next one has only the other.
			var held [2]pgx.Tx
			for n := range held {
				if held[n], err = s.Pool.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				var backend int
				if err := held[n].QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&backend); err != nil {
					t.Fatal(err)
				}
				if backends[backend] {
					held[0], held[n] = held[n], held[0] // one that has run none is the last
				}
			}
			_ = held[1].Rollback(t.Context())
			s.WantAnswer(paid("e7"), http.StatusOK)
			_ = held[0].Rollback(t.Context())
			s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
			s.WantAnswer(`{"id":"odd","type":"it's $1"}`, http.StatusOK)
			s.WantEffects(7)
			if stats, err := s.First.Stats(t.Context()); err != nil || stats.Unhandled.Events != 2 {
				t.Errorf("Stats = %+v, %v, want two unhandled", stats, err)
			}
			s.Deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Unhandled: 1})
			s.Exec(`update idem_events set received_at = '2020-01-01'`)
			s.wantPruned(s.First, 9)
			if len(backends) != 2 {
				t.Errorf("the handlers ran in %d sessions, want 2", len(backends))
			}
		})
	}
}

var isolationLevels = []string{"read committed", "repeatable read", "serializable"}

// gate stops the statements on which a trigger of idem_events fires, after Postgres
// has decided what they see: those of the sessions with its name whose text has a phrase.
// It is of sequences, since all see what was done to these.
const gate = `
create sequence arrived; create sequence opened;
create function gate() returns trigger language plpgsql as $$ begin
	if current_setting('application_name') = 'gated' and position(%s in current_query()) > 0 then
		perform nextval('arrived');
		while (select not is_called from opened) loop perform pg_sleep(0.002); end loop;
	end if;
	return null;
end $$;
create trigger gate before insert or update on idem_events for each statement execute function gate()`

// isolated is an app in a database whose default is another isolation level.
func isolated(t *testing.T, level string) *app {
	t.Helper()
	return openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	}))
}

// appWithClock is an app whose database has a now() of its own.
func appWithClock(t *testing.T, ahead string) *app {
	t.Helper()
	url := idemtest.URL(t)
	var schema string
	right := openPool(t, url, func(*pgxpool.Config) {})
	if err := right.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	_, err := right.Exec(t.Context(), `create function now() returns timestamptz stable language sql as
		$$ select pg_catalog.now() + interval '`+ahead+`' $$`)
	if err != nil {
		t.Fatal(err)
	}
	return openApp(t, openPool(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = schema + ", pg_catalog" // which is first, if it is not named
	}))
}
