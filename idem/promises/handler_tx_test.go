package promises_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

func TestCommitAndRollbackAreNotTheHandlers(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := tx.Commit(ctx); !errors.Is(err, pgtx.ErrOwned) {
			t.Errorf("Commit returned %v", err)
		}
		if err := tx.Rollback(ctx); !errors.Is(err, pgtx.ErrOwned) {
			t.Errorf("Rollback returned %v", err)
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
}

func TestHandlerMayUseSavepoints(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		risky, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := risky.Exec(ctx, `select 1/0`); err == nil {
			t.Error("division by zero succeeded")
		}
		if err := risky.Rollback(ctx); err != nil {
			return err
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
}

func TestTransactionIsClosedOnceTheHandlerReturned(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	var leaked pgx.Tx
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error { leaked = tx; return pay(ctx, tx, n) })
	s.WantAnswer(paid("e1"), http.StatusOK)
	if _, err := leaked.Exec(t.Context(), `insert into effects values ('late')`); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("the transaction was used after its end: %v", err)
	}
	s.WantEffects(1)
}

// Large objects are pgx's own: they would go to whoever has the connection next.
func TestLargeObjectsAreClosedOnceTheHandlerReturned(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	var leaked pgx.LargeObjects
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "e1" {
			leaked = tx.LargeObjects()
			idem.ExecAtCommit(ctx, `insert into effects (event) values ($1)`, n.ID)
			return nil
		}
		if _, err := leaked.Create(ctx, 0); err == nil {
			t.Error("another's transaction was used")
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(paid("e2"), http.StatusOK)
	s.WantEffects(2)
}

// A statement that would end the transaction is refused before Postgres gets it:
// afterwards is too late, the record of the event is committed or gone.
func TestHandlerCannotEndItsTransactionWithSQL(t *testing.T) {
	t.Parallel()
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				for _, c := range endings {
					if err := send(ctx, tx, c.sql); !errors.Is(err, pgtx.ErrOwned) {
						t.Errorf("%s: %q returned %v", c.why, c.sql, err)
					}
				}
				return pay(ctx, tx, n) // the transaction is as it was
			})
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantEffects(1)
			s.WantState("e1", idem.StateDone)
		})
	}
}

// The connection itself may be used, as long as its transaction is left alone.
func TestConnectionOfAHandlerMayBeUsedWithoutEndingTheTransaction(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		_, err := tx.Conn().Exec(ctx, `insert into effects (event) values ($1)`, n.ID)
		return err
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
	s.WantState("e1", idem.StateDone)
}

func TestDeclaredStatementsAreCommittedWithTheEvent(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, insertEffect, n.ID)
		idem.ExecAtCommit(ctx, `update effects set scope = 'after ' || event`)
		if _, err := tx.Exec(ctx, insertEffect, "by hand"); err != nil {
			return err
		}
		idem.AfterCommit(ctx, func(ctx context.Context) {
			if n := queryOne[int](s, `select count(*) from effects`); n != 2 {
				t.Errorf("%d effects are committed when AfterCommit runs, want 2", n)
			}
		})
		return nil
	})
	for range 3 {
		s.WantAnswer(paid("e1"), http.StatusOK)
	}
	s.WantEffects(2)
	if n := queryOne[int](s, `select count(*) from effects where scope = 'after ' || event`); n != 2 {
		t.Error("the declared statements ran out of their order")
	}
}

func TestDispatchExecutesWhatIsDeclared(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, insertEffect, n.ID)
		return nil
	})
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return idem.Dispatch(t.Context(), tx, s.Notes, identify([]byte(paid("e1"))))
	})
	if err != nil {
		t.Error(err)
	}
	s.WantEffects(1)
}

func TestExecAtCommitOutsideOfAHandlerSaysSo(t *testing.T) {
	t.Parallel()
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "ExecAtCommit needs the context of a handler") {
			t.Errorf("it said %q", said)
		}
	}()
	idem.ExecAtCommit(t.Context(), `select 1`)
}

func TestExecAtCommitTakesWhatOnlyLooksLikeAnEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, sql string }{
		{"a name that begins so", "with ending as (insert into effects (event) values ($1)) select"},
		{"a comment as sqlc writes it", "-- name: Commit :exec\ninsert into effects (event) values ($1)"},
		{"the word in a string", "insert into effects (event, scope) values ($1, '; rollback')"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(func(ctx context.Context, _ pgx.Tx, n *note) error {
				idem.ExecAtCommit(ctx, c.sql, n.ID)
				return nil
			})
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantEffects(1)
		})
	}
}

const insertEffect = `insert into effects (event) values ($1)`

// slow is an argument whose encoding takes until somebody lets it go on.
type slow struct{ encoding, goOn chan struct{} }

func (s slow) Value() (driver.Value, error) {
	close(s.encoding)
	<-s.goOn
	return "late", nil
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

// endingsAtCommit are more, of declared statements.
var endingsAtCommit = []struct{ why, sql string }{
	{"white space, and the next begins", "\n\tcommit; begin"},
	{"a semicolon", "end;"},
	{"a comment in the statement", "/* a /* b */ c */ rollback /* to */ work"},
	{"the second of two statements", "select 1; rollback"},
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
