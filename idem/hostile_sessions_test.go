package idem_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// isolated is an app in a database whose default is another isolation level.
func isolated(t *testing.T, level string) *app {
	t.Helper()
	return openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	}))
}

func TestConcurrentDuplicatesHaveOneEffectAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := isolated(t, level)
			other := s.newProcessor()
			delivered := s.startDelivery()
			if outcome, err := other.Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Duplicate || err != nil {
				t.Errorf("the duplicate's outcome is %s, %v, want duplicate", outcome, err)
			}
			delivered()
			s.wantEffects(1)
		})
	}
}

// What is stored without a handler is stored by one statement of this package's own.
func TestConcurrentDuplicatesWithoutAHandlerAreStoredOnceAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := isolated(t, level)
			first, err := s.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(context.Background())
			_, err = first.Exec(t.Context(), `insert into idem_events values ('notes//e1', 'new', '', 'unhandled');
				insert into idem_payloads (event, source, received_at, body) values ('notes//e1', 'notes', now(), '')`)
			if err != nil {
				t.Fatal(err)
			}
			var duplicate sync.WaitGroup
			duplicate.Go(func() {
				s.wantAnswer(newBody, http.StatusOK)
			})
			if err := s.await(t.Context(), blocked); err != nil {
				t.Fatal(err)
			}
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			duplicate.Wait()
			s.wantAnswer(newBody, http.StatusOK)
			s.wantState("e1", idem.StateUnhandled)
			s.wantPayload("e1", "") // the first one's
		})
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
			s.processor.KeepPayloads = true
			var mu sync.Mutex
			backends := make(map[int]bool)
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
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
					deliveries.Go(func() { s.wantAnswer(paid(id), http.StatusOK) })
				}
			}
			deliveries.Wait()
			s.wantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
			s.wantAnswer("not JSON", http.StatusOK)
			s.wantEffects(6)
			if stats, err := s.processor.Stats(t.Context()); err != nil || stats.Unhandled.Events != 2 {
				t.Errorf("Stats = %+v, %v, want two unhandled", stats, err)
			}
			s.deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
			s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Unhandled: 1})
			s.exec(`update idem_events set received_at = '2020-01-01'`)
			s.wantPruned(s.processor, 8)
			if len(backends) != 2 {
				t.Errorf("the handlers ran in %d sessions, want 2", len(backends))
			}
		})
	}
}

// All times in the database are its own, compared with its own: it does not
// matter how wrong they are.
func TestClockOfTheDatabaseMayBeWrong(t *testing.T) {
	t.Parallel()
	for _, ahead := range []string{"1 hour", "-1 hour", "10 years"} {
		t.Run(ahead, func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, ahead)
			s.on(pay)
			for range 2 {
				s.wantAnswer(paid("e1"), http.StatusOK)
				s.wantAnswer(`{"id":"e2","type":"new"}`, http.StatusOK)
			}
			s.wantEffects(1)
			const wrong = `select count(*) from idem_events
				where received_at - $1::interval between pg_catalog.now() - interval '30 minutes' and pg_catalog.now()`
			if n := queryOne[int](s, wrong, ahead); n != 2 {
				t.Fatalf("%d of the stored times are wrong, want 2", n)
			}
			stats, err := s.processor.Stats(t.Context())
			if oldest := stats.Unhandled.Oldest; err != nil || oldest < 0 || oldest > 30*time.Minute {
				t.Errorf("Stats = %+v, %v, want an unhandled event that has just come", stats, err)
			}
			if n, err := s.processor.Prune(t.Context()); n != 0 || err != nil {
				t.Errorf("Prune = %d, %v, and nothing is old", n, err)
			}
			s.deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
			s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			s.exec(`update idem_events set received_at = received_at - interval '50 days'`)
			s.exec(`delete from idem_prunes`) // as if they had been there
			s.wantPruned(s.processor, 2)
		})
	}
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
