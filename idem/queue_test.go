package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

const insertEffect = `insert into effects (event) values ($1)`

func TestQueuedStatementsAreCommittedWithTheEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
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
		t.Error("the queued statements ran out of their order")
	}
}

func TestNothingQueuedRunsWhenTheHandlerFails(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, insertEffect, n.ID)
		return errors.New("no such order")
	})
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.wantEffects(0)
}

func TestQueuedStatementThatFailsFailsTheHandler(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]func(context.Context){
		"Postgres refuses it":      func(ctx context.Context) { idem.ExecAtCommit(ctx, `insert into effects (event) values (null)`) },
		"it is no SQL":             func(ctx context.Context) { idem.ExecAtCommit(ctx, `insert in effects`) },
		"an argument does not fit": func(ctx context.Context) { idem.ExecAtCommit(ctx, insertEffect, struct{}{}) },
		"an argument is missing":   func(ctx context.Context) { idem.ExecAtCommit(ctx, insertEffect) },
		"it ends the transaction": func(ctx context.Context) {
			idem.ExecAtCommit(ctx, `rollback`)
			idem.ExecAtCommit(ctx, `insert in effects`)
		},
		"the first of several": func(ctx context.Context) {
			idem.ExecAtCommit(ctx, `select 1/0`)
			idem.ExecAtCommit(ctx, insertEffect, "e1")
		},
		"a constraint is checked at COMMIT": func(ctx context.Context) { idem.ExecAtCommit(ctx, `insert into later values ('x')`) },
		"a constraint is broken by the second": func(ctx context.Context) {
			idem.ExecAtCommit(ctx, insertEffect, "e1")
			idem.ExecAtCommit(ctx, `select 1/0`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { c.MaxConns = 1 }))
			s.exec(`create table effects_of (id text primary key); create table later (id text references effects_of deferrable initially deferred)`)
			broken := true
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if broken {
					queue(ctx)
					return nil
				}
				return pay(ctx, tx, n)
			})
			s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
			s.wantState("e1", idem.StateRetrying)
			s.wantEffects(0)
			broken = false
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(1)
		})
	}
}

func TestQueueWorksInEveryQueryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openShop(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { c.ConnConfig.DefaultQueryExecMode = mode }))
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

func TestDispatchExecutesWhatIsQueued(t *testing.T) {
	t.Parallel()
	s := newShop(t)
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

func TestQueueOutsideOfAHandlerSaysSo(t *testing.T) {
	t.Parallel()
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "Queue needs the context of a handler") {
			t.Errorf("it said %q", said)
		}
	}()
	idem.ExecAtCommit(t.Context(), `select 1`)
}

// Behind one, COMMIT would say that all is well, and commit nothing.
func TestQueueRefusesToEndTheTransaction(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"rollback", "ROLLBACK TO SAVEPOINT s", "\n\tcommit; begin", "end;", "abort", "prepare transaction 'x'"} {
		s := newShop(t)
		s.on(func(ctx context.Context, _ pgx.Tx, n *note) error {
			idem.ExecAtCommit(ctx, insertEffect, n.ID)
			idem.ExecAtCommit(ctx, sql)
			return nil
		})
		s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
		s.wantEffects(0)
		s.wantState("e1", idem.StateRetrying)
	}
	s := newShop(t)
	s.on(func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, "with ending as (insert into effects (event) values ($1)) select", n.ID)
		return nil
	})
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
}
