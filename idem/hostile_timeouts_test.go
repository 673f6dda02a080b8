package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Postgres has timeouts of its own, which the administrator may have set to
// anything. The handlers set them here, so that they end nothing else. None ends
// COMMIT: Postgres disarms statement_timeout before it.
func TestTimeoutOfPostgresIsAFailureLikeAnyOther(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(ctx context.Context, s *app, tx pgx.Tx) error{
		"statement_timeout": func(ctx context.Context, _ *app, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `set local statement_timeout = '10ms'; select pg_sleep(60)`)
			return err
		},
		"lock_timeout": func(ctx context.Context, _ *app, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `set local lock_timeout = '10ms'; lock table held`)
			return err
		},
		"idle_in_transaction_session_timeout": func(ctx context.Context, s *app, tx pgx.Tx) error {
			if err := s.idleUntilEnded(ctx, tx); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `select 1`)
			return err
		},
		"idle_in_transaction_session_timeout before COMMIT": func(ctx context.Context, s *app, tx pgx.Tx) error {
			return s.idleUntilEnded(ctx, tx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.exec(`create table held ()`)
			holder, err := s.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Rollback(context.Background())
			if _, err := holder.Exec(t.Context(), `lock table held`); err != nil {
				t.Fatal(err)
			}
			runs := 0
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if runs++; runs > 1 {
					return nil
				}
				return hang(ctx, s, tx)
			})
			s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
			s.wantEffects(0)
			s.wantState("e1", idem.StateRetrying)
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(1)
			if runs != 2 {
				t.Errorf("the handler ran %d times, want 2", runs)
			}
		})
	}
}

// idleUntilEnded leaves a transaction idle until Postgres has ended its session.
func (s *app) idleUntilEnded(ctx context.Context, tx pgx.Tx) error {
	var pid int
	if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = '10ms'`); err != nil {
		return err
	}
	return s.await(ctx, `select not exists (select from pg_stat_activity where pid = $1)`, pid)
}

// While another process processes the event, a statement_timeout ends the mark,
// which waits for it, before the handler runs.
func TestStatementTimeoutOfTheMarkIsNoFailureOfTheEvent(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1)) // one session, so that it can be set
	s.on(pay)
	first, err := pgx.ConnectConfig(t.Context(), s.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close(context.Background())
	if _, err := first.Exec(t.Context(), `begin; insert into idem_events values ('notes//e1', 'paid', '', 'done')`); err != nil {
		t.Fatal(err)
	}
	s.exec(`set statement_timeout = '10ms'`)
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	for range 100 { // the time-out may end this as well
		if _, err := s.pool.Exec(t.Context(), `set statement_timeout = 0`); err == nil {
			break
		}
	}
	if _, err := first.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.logged(), "statement timeout") {
		t.Error("the log does not tell that a timeout ended the mark:\n" + s.logged())
	}
	s.wantState("e1", "")
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
}

// A replay that waits for another event of the entity is not stopped by a time-out of
// Postgres, nor by its own Timeout: that event fails, as it does when the wait takes too
// long by itself.
func TestTimeoutOfPostgresDoesNotStopAReplay(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"lock_timeout", "statement_timeout", "Timeout"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			s := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				if setting != "Timeout" { // shorter than any wait for a lock, and longer than any other statement takes
					c.ConnConfig.RuntimeParams[setting] = "3s"
				}
			}))
			if setting == "Timeout" {
				s.processor.Timeout = 3 * time.Second // shorter than any wait for a lock
			}
			s.inbox.PassParked = true
			fixed, entered, release := false, make(chan struct{}), make(chan struct{})
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				switch {
				case n.ID == "e2":
					close(entered)
					<-release
				case !fixed:
					return idem.NoRetry(errors.New("no such order"))
				}
				return pay(ctx, tx, n)
			})
			s.store(letter("e1", "o1", 1), letter("other", "o2", 1))
			s.drain(2)
			fixed = true
			s.store(letter("e2", "o1", 2))
			stop := s.start(s.inbox)
			<-entered
			s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Failed: 1})
			close(release)
			s.until(`select state = 'done' from idem_events where event like '%e2'`)
			stop()
			s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			s.wantEffects(3)
		})
	}
}

// Somebody has locked the table of an event whose attempt has failed, for longer than the
// lock_timeout that the role has. The failure is recorded once that has ended, and is
// no crash.
func TestLockTimeoutOfPostgresDoesNotMakeACrashOfAFailure(t *testing.T) {
	t.Parallel()
	s := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["lock_timeout"] = "300ms"
	}))
	holder, err := pgx.ConnectConfig(t.Context(), s.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), `set lock_timeout = 0; begin`); err != nil {
		t.Fatal(err)
	}
	locked := make(chan error, 1)
	s.on(func(ctx context.Context, _ pgx.Tx, _ *note) error {
		go func() {
			_, err := holder.Exec(context.Background(), `lock table idem_events in share mode`)
			locked <- err
		}()
		return errors.Join(s.await(ctx, blocked), idem.NoRetry(errors.New("no such order")))
	})
	s.store(letter("e1", "o1", 1))
	s.start(s.inbox)
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	s.until(blocked) // what records the failure
	s.until(`select not (` + strings.TrimPrefix(blocked, "select ") + `)`)
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	s.wantWorked(idem.Parked)
	s.wantRow("e1", "state, attempts, crashes, claimed_by is null", "(parked,1,0,t)")
}
