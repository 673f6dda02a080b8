package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// endings are ways to end a transaction with SQL. Package pgtx has them all; here
// are those that once were acknowledged, and one of each kind.
var endings = []struct{ why, sql string }{
	{"COMMIT", "commit"},
	{"ROLLBACK", "rollback"},
	{"END", "end work"},
	{"ABORT", "abort"},
	{"it is undone, and another begins", "rollback and chain"},
	{"it is committed, and another begins", "commit and chain"},
	{"another begins, in two statements", "rollback; begin"},
	{"another begins after COMMIT, in two statements", "commit; begin"},
	{"behind a comment, as sqlc writes it", "-- name: End :exec\nrollback"},
	{"between comments", "/* a /* b */ c */ commit /* d */ and chain"},
	{"behind another statement", "insert into effects values ('x'); commit"},
	{"a second phase", "prepare transaction 'x'"},
}

// senders are ways to have Postgres execute a statement through the transaction.
var senders = map[string]func(context.Context, pgx.Tx, string) error{
	"Exec": func(ctx context.Context, tx pgx.Tx, sql string) error {
		_, err := tx.Exec(ctx, sql)
		return err
	},
	"Query": func(ctx context.Context, tx pgx.Tx, sql string) error {
		rows, err := tx.Query(ctx, sql)
		rows.Close()
		return errors.Join(err, rows.Err())
	},
	"QueryRow": func(ctx context.Context, tx pgx.Tx, sql string) error {
		return tx.QueryRow(ctx, sql).Scan()
	},
	"SendBatch": func(ctx context.Context, tx pgx.Tx, sql string) error {
		b := &pgx.Batch{}
		b.Queue("select 1")
		b.Queue(sql)
		return tx.SendBatch(ctx, b).Close()
	},
	"Prepare": func(ctx context.Context, tx pgx.Tx, sql string) error {
		_, err := tx.Prepare(ctx, "ending", sql)
		return err
	},
	"a savepoint": func(ctx context.Context, tx pgx.Tx, sql string) error {
		savepoint, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = savepoint.Exec(ctx, sql)
		return err
	},
}

// A statement that would end the transaction is refused before Postgres gets it:
// afterwards is too late, the record of the event is committed or gone.
func TestHandlerCannotEndItsTransactionWithSQL(t *testing.T) {
	t.Parallel()
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				for _, c := range endings {
					if err := send(ctx, tx, c.sql); !errors.Is(err, idem.ErrTxOwned) {
						t.Errorf("%s: %q returned %v", c.why, c.sql, err)
					}
				}
				return pay(ctx, tx, n) // the transaction is as it was
			})
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
		})
	}
}

func TestHandlerThatTriesToEndItsTransactionHasFailed(t *testing.T) {
	t.Parallel()
	for _, c := range endings {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, c.sql)
				return err
			})
			s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
			s.wantEffects(0)
			s.wantState("e1", idem.StateRetrying)
			if !strings.Contains(s.logged(), "the transaction is not the handler's to end") {
				t.Error("the log does not tell what the handler did wrong:\n" + s.logged())
			}
		})
	}
}

// tx.Conn() is the connection itself, where nothing is refused. What ends the
// transaction there is noticed: the attempt has failed, whatever the handler
// returns, and nothing that was not committed is acknowledged.
func TestHandlerThatEndsItsTransactionOnTheConnectionHasFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, sql  string
		committed bool // with the record of the event: the next delivery is a duplicate
	}{
		{"undone", "rollback", false},
		{"undone, and another begins", "rollback and chain", false},
		{"undone, and another begins, in two statements", "rollback; begin", false},
		{"undone behind a comment", "-- name: End :exec\nrollback", false},
		{"aborted, and another begins", "abort; start transaction", false},
		{"committed", "commit", true},
		{"committed, and another begins", "commit and chain", true},
		{"committed, and another begins, in two statements", "end; begin", true},
	} {
		ending := func(s *app) {
			runs := 0
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if runs++; runs > 1 {
					return nil
				}
				_, err := tx.Conn().Exec(ctx, c.sql)
				return err
			})
		}
		t.Run(c.why+", inline", func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			ending(s)
			s.deliver(paid("e1"))
			if !strings.Contains(s.logged(), "the handler ended the transaction with SQL") {
				t.Error("the log does not tell what the handler did wrong:\n" + s.logged())
			}
			if c.committed { // work and record together, so the event is done
				s.wantState("e1", idem.StateDone)
			} else {
				s.wantEffects(0)
				s.wantState("e1", idem.StateRetrying)
			}
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
		})
		t.Run(c.why+", in an inbox", func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			ending(s)
			s.wantAnswer(paid("e1"), http.StatusOK)
			defer s.start(s.inbox)()
			if c.committed {
				s.wantWorked(idem.Duplicate)
			} else {
				s.wantWorked(idem.Retrying, idem.Done)
			}
			if !strings.Contains(s.logged(), "the handler ended the transaction with SQL") {
				t.Error("the log does not tell what the handler did wrong:\n" + s.logged())
			}
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
		})
	}
}

// rewritten is a statement that a rewriter writes, whatever the text.
type rewritten string

func (r rewritten) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return string(r), nil, nil
}

// What Postgres executes may be another statement than its text. If that ends the
// transaction, it is noticed, also when another one has begun.
func TestHandlerThatEndsItsTransactionUnseenHasFailed(t *testing.T) {
	t.Parallel()
	exec := func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}
	batch := func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		b := &pgx.Batch{}
		b.Queue(sql, args...)
		return tx.SendBatch(ctx, b).Close()
	}
	query := func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		rows, _ := tx.Query(ctx, sql, args...)
		rows.Close()
		return rows.Err()
	}
	queryRow := func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		_ = tx.QueryRow(ctx, sql, args...).Scan()
		return nil
	}
	declared := func(ctx context.Context, _ pgx.Tx, sql string, args ...any) error {
		idem.ExecAtCommit(ctx, sql, args...)
		return nil
	}
	for name, send := range map[string]func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error{
		"Exec": exec, "SendBatch": batch, "Query": query, "QueryRow": queryRow, "ExecAtCommit": declared,
	} {
		for how, end := range map[string]func(ctx context.Context, tx pgx.Tx) error{
			"a rewriter writes it":                     func(ctx context.Context, tx pgx.Tx) error { return send(ctx, tx, "select 1", rewritten("rollback")) },
			"it is prepared":                           func(ctx context.Context, tx pgx.Tx) error { return send(ctx, tx, "finish") },
			"it is prepared under a name with a space": func(ctx context.Context, tx pgx.Tx) error { return send(ctx, tx, "orders: finish") },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
					c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
						_, err := conn.Prepare(ctx, "finish", "rollback")
						_, spaced := conn.Prepare(ctx, "orders: finish", "rollback")
						return errors.Join(err, spaced)
					}
				}))
				s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
					if err := errors.Join(pay(ctx, tx, n), end(ctx, tx)); err != nil {
						return err
					}
					return exec(ctx, tx, "begin") // inside of a transaction that is only a warning
				})
				s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
				s.wantEffects(0)
				s.wantState("e1", idem.StateRetrying)
				if !strings.Contains(s.logged(), "the handler ended the transaction with SQL") {
					t.Error("the log does not tell what the handler did wrong:\n" + s.logged())
				}
				if o, err := s.processor.DryRun(t.Context(), identify([]byte(paid("e2")))); o.Acknowledged() || err == nil {
					t.Errorf("DryRun = %s, %v, want a failure", o, err)
				}
			})
		}
	}
}

// Inside of a handler's transaction Postgres has no function, procedure or block
// end it: the attempt has failed, even if the handler does not look at the error.
func TestBlockThatEndsTheTransactionFailsTheHandler(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"do $$ begin commit; end $$", "do $$ begin rollback and chain; end $$", "call finish()", "select 1; call finish()",
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.exec(`create procedure finish() language plpgsql as $$ begin commit; end $$`)
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				_, _ = tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
				return nil
			})
			s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
			s.wantEffects(0)
			s.wantState("e1", idem.StateRetrying)
		})
	}
}

// The connection itself may be used, as long as its transaction is left alone.
func TestConnectionOfAHandlerMayBeUsedWithoutEndingTheTransaction(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		_, err := tx.Conn().Exec(ctx, `insert into effects (event) values ($1)`, n.ID)
		return err
	})
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
	s.wantState("e1", idem.StateDone)
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
		s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
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
		outcome, _ := s.processor.Accept(t.Context(), identify([]byte(paid("e1"))))
		done := queryOne[bool](s, `select exists (select from idem_events where event = 'notes//e1' and state = 'done')`)
		paid := queryOne[int](s, `select count(*) from effects where event = 'e1'`) == 1
		if outcome.Acknowledged() != done || done != paid {
			t.Errorf("%q: outcome %s, recorded %t, paid %t", sql, outcome, done, paid)
		}
	})
}

// dangerous tells whether SQL might do more than end its transaction.
func dangerous(sql string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(sql), func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch word {
		case "drop", "delete", "update", "truncate", "alter", "copy", "create", "do", "call", "lock", "set", "grant", "reset", "insert":
			return true
		}
	}
	return false
}
