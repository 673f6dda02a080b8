package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
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

// endingsAtCommit are more, of declared statements.
var endingsAtCommit = []struct{ why, sql string }{
	{"white space, and the next begins", "\n\tcommit; begin"},
	{"a semicolon", "end;"},
	{"a comment in the statement", "/* a /* b */ c */ rollback /* to */ work"},
	{"the second of two statements", "select 1; rollback"},
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

// sendersOfArguments are senders of what Postgres may get as another statement than the text, and
// of what is declared.
var sendersOfArguments = map[string]func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error{
	"Exec": func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	},
	"SendBatch": func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		b := &pgx.Batch{}
		b.Queue(sql, args...)
		return tx.SendBatch(ctx, b).Close()
	},
	"Query": func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		rows, _ := tx.Query(ctx, sql, args...)
		rows.Close()
		return rows.Err()
	},
	"QueryRow": func(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
		_ = tx.QueryRow(ctx, sql, args...).Scan()
		return nil
	},
	"ExecAtCommit": func(ctx context.Context, _ pgx.Tx, sql string, args ...any) error {
		idem.ExecAtCommit(ctx, sql, args...)
		return nil
	},
}

// rewritten is a statement that a rewriter writes, whatever the text.
type rewritten string

func (r rewritten) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return string(r), nil, nil
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

// dangerous reports whether SQL might do more than end its transaction.
func dangerous(sql string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(sql), func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch word {
		case "drop", "delete", "update", "truncate", "alter", "copy", "create", "do", "call", "lock", "set", "grant", "reset", "insert":
			return true
		}
	}
	return false
}
