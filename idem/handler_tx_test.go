package idem_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
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

// slow is an argument whose encoding takes until somebody lets it go on.
type slow struct{ encoding, goOn chan struct{} }

func (s slow) Value() (driver.Value, error) {
	close(s.encoding)
	<-s.goOn
	return "late", nil
}

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
					w.look.wantEffects(3)
				})
			})
		}
	}
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
