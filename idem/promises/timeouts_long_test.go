//go:build long

package promises_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

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
					c.ConnConfig.RuntimeParams[setting] = "4s"
				}
			}))
			if setting == "Timeout" {
				s.First.Timeout = 4 * time.Second // shorter than any wait for a lock
			}
			s.Inbox.PassParked = true
			fixed, entered, release := false, make(chan struct{}), make(chan struct{})
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				switch {
				case n.ID == "e2":
					close(entered)
					<-release
				case !fixed:
					return idem.NoRetry(errors.New("no such order"))
				}
				return pay(ctx, tx, n)
			})
			s.Store(letter("e1", "o1", 1), letter("other", "o2", 1))
			s.Drain(2)
			fixed = true
			s.Store(letter("e2", "o1", 2))
			stop := s.Start(s.Inbox)
			<-entered
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Failed: 1})
			close(release)
			s.Until(`select state = 'done' from idem_events where event like '%e2'`)
			stop()
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			s.WantEffects(3)
		})
	}
}

// "timeout: context deadline exceeded" is no help to a person.
func TestErrorOfATimeoutSaysWhatTookHowLongAndWhatToDo(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, c := range map[string]struct {
		handler func(context.Context, pgx.Tx, *note) error
		says    []string
	}{
		"a slow query": {
			func(ctx context.Context, tx pgx.Tx, _ *note) error {
				_, err := tx.Exec(ctx, `select pg_sleep(60)`)
				return err
			},
			[]string{"the time of the handler was over after ", "s: see what it waited for, a lock or a slow query for example, or raise Timeout (in a first try AnswerWithin): "},
		},
		"a request with the context": {
			func(ctx context.Context, _ pgx.Tx, _ *note) error { <-ctx.Done(); return ctx.Err() },
			[]string{"the time of the handler was over after ", "or raise Timeout (in a first try AnswerWithin): "},
		},
		"what ignores its context": {
			func(context.Context, pgx.Tx, *note) error { <-hang; return nil },
			[]string{"the handler did not return in time: after ", "what it waits for does not end with its context"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.On(c.handler)
			s.Inbox.Timeout, s.Inbox.MaxAttempts = 5*time.Second, 1 // which it has to begin in
			s.Store(letter("e1", "o1", 1))
			s.Drain(1)
			var said string
			for _, e := range s.Listed(idem.Filter{States: []idem.State{idem.StateParked}}) {
				said = e.LastError
			}
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("its error is %q, want it to say %q", said, part)
				}
			}
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
	holder := s.Session(`set lock_timeout = 0; begin`)
	locked := make(chan error, 1)
	s.On(func(ctx context.Context, _ pgx.Tx, _ *note) error {
		go func() {
			_, err := holder.Exec(context.Background(), `lock table idem_events in share mode`)
			locked <- err
		}()
		return errors.Join(s.Await(ctx, blocked), idem.NoRetry(errors.New("no such order")))
	})
	s.Store(letter("e1", "o1", 1))
	s.Start(s.Inbox)
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	s.Until(blocked) // what records the failure
	s.Until(`select not (` + strings.TrimPrefix(blocked, "select ") + `)`)
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	s.WantWorked(idem.Parked)
	s.WantRow("e1", "state, attempts, crashes, claimed_by is null", "(parked,1,0,t)")
}
