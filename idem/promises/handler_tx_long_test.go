//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// A goroutine that is about to send a statement when its handler returns would send it
// in whatever transaction the connection has then, or in none.
func TestStatementOfALeakedGoroutineIsNotExecutedAfterTheTransaction(t *testing.T) {
	t.Parallel()
	failure := errors.New("no such order")
	for name, send := range map[string]func(tx pgx.Tx, arg any) error{
		"Exec": func(tx pgx.Tx, arg any) error {
			_, err := tx.Exec(context.Background(), insertEffect, arg)
			return err
		},
		"Query": func(tx pgx.Tx, arg any) error {
			rows, _ := tx.Query(context.Background(), insertEffect, arg)
			rows.Close()
			return rows.Err()
		},
		"QueryRow": func(tx pgx.Tx, arg any) error {
			return tx.QueryRow(context.Background(), insertEffect+` returning event`, arg).Scan(new(string))
		},
		"SendBatch": func(tx pgx.Tx, arg any) error {
			b := &pgx.Batch{}
			b.Queue(insertEffect, arg)
			return tx.SendBatch(context.Background(), b).Close()
		},
		"a savepoint": func(tx pgx.Tx, arg any) error {
			savepoint, err := tx.Begin(context.Background())
			if err != nil {
				return err
			}
			_, err = savepoint.Exec(context.Background(), insertEffect, arg)
			return err
		},
	} {
		for _, returned := range []error{nil, failure} {
			t.Run(fmt.Sprintf("%s, the handler returned %v", name, returned), func(t *testing.T) {
				t.Parallel()
				eachWay(t, func(t *testing.T, w *way) {
					late := slow{make(chan struct{}), make(chan struct{})}
					ended := make(chan error, 1)
					leaks := true
					w.begin(patience, func(ctx context.Context, tx pgx.Tx, n *note) error {
						if err := pay(ctx, tx, n); err != nil {
							return err
						}
						if !leaks {
							if n.ID == "e1" {
								w.wantFailed("e1", "", 0)
							}
							return nil
						}
						leaks = false
						go func() { ended <- send(tx, late) }()
						<-late.encoding
						return returned
					})
					w.fails("e1")
					w.again("e1") // on the connection that there is
					w.does("e2")
					close(late.goOn)
					if err := <-ended; err == nil {
						t.Error("the statement was executed")
					}
					w.does("e3")
					w.look.WantEffects(3)
				})
			})
		}
	}
}

// Whatever a handler executes: an event that is acknowledged has its record and
// its effect, both or, if it came to neither, is not acknowledged.
func FuzzHandlerSQLNeverLosesTheEvent(f *testing.F) {
	for _, c := range endings {
		f.Add(c.sql, false)
		f.Add(c.sql, true)
	}
	f.Add("savepoint s; rollback to s", false)
	f.Add("select 1/0", true)
	f.Add("\x00", false)
	f.Fuzz(func(t *testing.T, sql string, onConnection bool) {
		if dangerous(sql) {
			return
		}
		s := newApp(t)
		s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
			if err := pay(ctx, tx, n); err != nil {
				return err
			}
			if onConnection {
				_, _ = tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
				return nil
			}
			_, _ = tx.Exec(ctx, sql)
			return nil
		})
		outcome, _ := s.First.Accept(t.Context(), identify([]byte(paid("e1"))))
		done := queryOne[bool](s, `select exists (select from idem_events where event = 'notes//e1' and state = 'done')`)
		paid := queryOne[int](s, `select count(*) from effects where event = 'e1'`) == 1
		if outcome.Acknowledged() != done || done != paid {
			t.Errorf("%q: outcome %s, recorded %t, paid %t", sql, outcome, done, paid)
		}
	})
}

// What encodes an argument is the application's code, which may wait for a lock, or for
// the network.
func TestArgumentThatIsNotEncodedInTimeFailsTheHandlerAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.ConnConfig.DefaultQueryExecMode = mode
			}))
			s.First.AnswerWithin = 3 * time.Second // e2 has to be done in that
			arg := slow{make(chan struct{}), make(chan struct{})}
			goOn := sync.OnceFunc(func() { close(arg.goOn) })
			defer goOn()
			var session int
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID != "e1" || session != 0 {
					return pay(ctx, tx, n)
				}
				idem.ExecAtCommit(ctx, insertEffect, arg)
				return tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&session)
			})
			late := time.AfterFunc(patience/4, func() {
				t.Error("the delivery waits for the argument")
				goOn()
			})
			s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
			late.Stop()
			s.WantState("e1", "")
			s.Until(`select not exists (select from pg_stat_activity where pid = $1)`, session)
			s.WantAnswer(paid("e2"), http.StatusOK)
			goOn()
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantEffects(2)
			if n := queryOne[int](s, `select count(*) from effects where event = 'late'`); n != 0 {
				t.Errorf("%d rows were written after the rollback", n)
			}
		})
	}
}

func TestWorkerGoesOnWhereAnArgumentIsNotEncodedInTime(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.Timeout = 5 * time.Second // e2 has to be done in that
	s.Inbox.MaxAttempts = 1
	arg := slow{make(chan struct{}), make(chan struct{})}
	goOn := sync.OnceFunc(func() { close(arg.goOn) })
	defer goOn()
	late := time.AfterFunc(patience/4, func() {
		t.Error("the worker waits for the argument")
		goOn()
	})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "e1" {
			idem.ExecAtCommit(ctx, insertEffect, arg)
			return nil
		}
		return pay(ctx, tx, n)
	})
	s.Store(letter("e1", "o1", 0), letter("e2", "o2", 1))
	s.Drain(2)
	late.Stop()
	s.WantState("e1", idem.StateParked)
	s.WantState("e2", idem.StateDone)
	s.WantEffects(1)
}

func TestExecAtCommitWorksInEveryQueryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			broken := true
			s.On(func(ctx context.Context, _ pgx.Tx, n *note) error {
				idem.ExecAtCommit(ctx, insertEffect, n.ID)
				if broken {
					idem.ExecAtCommit(ctx, `select 1/0`)
				}
				return nil
			})
			s.WantAnswer(paid("it's"), http.StatusServiceUnavailable)
			s.WantEffects(0)
			broken = false
			s.WantAnswer(paid("it's"), http.StatusOK)
			s.WantAnswer(paid("it's"), http.StatusOK)
			s.WantEffects(1)
		})
	}
}
