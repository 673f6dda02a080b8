package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func TestCommitAndRollbackAreNotTheHandlers(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := tx.Commit(ctx); !errors.Is(err, idem.ErrTxOwned) {
			t.Errorf("Commit returned %v", err)
		}
		if err := tx.Rollback(ctx); !errors.Is(err, idem.ErrTxOwned) {
			t.Errorf("Rollback returned %v", err)
		}
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
}

func TestHandlerMayUseSavepoints(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
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
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
}

func TestTransactionIsClosedOnceTheHandlerReturned(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	var leaked pgx.Tx
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error { leaked = tx; return pay(ctx, tx, n) })
	s.wantAnswer(paid("e1"), http.StatusOK)
	if _, err := leaked.Exec(t.Context(), `insert into effects values ('late')`); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("the transaction was used after its end: %v", err)
	}
	s.wantEffects(1)
}

// Large objects are pgx's own: they would go to whoever has the connection next.
func TestLargeObjectsAreClosedOnceTheHandlerReturned(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	var leaked pgx.LargeObjects
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "e1" {
			leaked = tx.LargeObjects()
			idem.ExecAtCommit(ctx, `insert into effects (event) values ($1)`, n.ID)
			return nil
		}
		if _, err := leaked.Create(ctx, 0); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("another's transaction was used: %v", err)
		}
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantAnswer(paid("e2"), http.StatusOK)
	s.wantEffects(2)
}
