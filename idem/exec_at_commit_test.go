package idem_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

const insertEffect = `insert into effects (event) values ($1)`

func TestDeclaredStatementsAreCommittedWithTheEvent(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
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
		s.wantAnswer(paid("e1"), http.StatusOK)
	}
	s.wantEffects(2)
	if n := queryOne[int](s, `select count(*) from effects where scope = 'after ' || event`); n != 2 {
		t.Error("the declared statements ran out of their order")
	}
}

func TestExecAtCommitWorksInEveryQueryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			broken := true
			s.on(func(ctx context.Context, _ pgx.Tx, n *note) error {
				idem.ExecAtCommit(ctx, insertEffect, n.ID)
				if broken {
					idem.ExecAtCommit(ctx, `select 1/0`)
				}
				return nil
			})
			s.wantAnswer(paid("it's"), http.StatusServiceUnavailable)
			s.wantEffects(0)
			broken = false
			s.wantAnswer(paid("it's"), http.StatusOK)
			s.wantAnswer(paid("it's"), http.StatusOK)
			s.wantEffects(1)
		})
	}
}

func TestDispatchExecutesWhatIsDeclared(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, insertEffect, n.ID)
		return nil
	})
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		return idem.Dispatch(t.Context(), tx, s.notes, identify([]byte(paid("e1"))))
	})
	if err != nil {
		t.Error(err)
	}
	s.wantEffects(1)
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
			s.on(func(ctx context.Context, _ pgx.Tx, n *note) error {
				idem.ExecAtCommit(ctx, c.sql, n.ID)
				return nil
			})
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(1)
		})
	}
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
			s.processor.Timeout = 3 * time.Second // e2 has to be done in that
			arg := slow{make(chan struct{}), make(chan struct{})}
			goOn := sync.OnceFunc(func() { close(arg.goOn) })
			defer goOn()
			var session int
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
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
			s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
			late.Stop()
			s.wantRow("e1", "state, attempts", "(retrying,1)")
			s.until(`select not exists (select from pg_stat_activity where pid = $1)`, session)
			s.wantAnswer(paid("e2"), http.StatusOK)
			goOn()
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(2)
			if n := queryOne[int](s, `select count(*) from effects where event = 'late'`); n != 0 {
				t.Errorf("%d rows were written after the rollback", n)
			}
		})
	}
}

func TestWorkerGoesOnWhereAnArgumentIsNotEncodedInTime(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.inbox.Timeout = 3 * time.Second // e2 has to be done in that
	s.inbox.MaxAttempts = 1
	arg := slow{make(chan struct{}), make(chan struct{})}
	goOn := sync.OnceFunc(func() { close(arg.goOn) })
	defer goOn()
	late := time.AfterFunc(patience/4, func() {
		t.Error("the worker waits for the argument")
		goOn()
	})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "e1" {
			idem.ExecAtCommit(ctx, insertEffect, arg)
			return nil
		}
		return pay(ctx, tx, n)
	})
	s.store(letter("e1", "o1", 0), letter("e2", "o2", 1))
	s.drain(2)
	late.Stop()
	s.wantState("e1", idem.StateParked)
	s.wantState("e2", idem.StateDone)
	s.wantEffects(1)
}
