package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemsql"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestTransactionsOfADBAreSavepoints(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			for _, end := range []struct {
				note string
				end  func(*sql.Tx) error
			}{{"kept", (*sql.Tx).Commit}, {"undone", (*sql.Tx).Rollback}, {"kept, too", (*sql.Tx).Commit}} {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				if err := insert(ctx, tx, end.note); err != nil {
					return err
				}
				if err := insert(ctx, db, "beside"); !errors.Is(err, idemsql.ErrTxOpen) {
					return fmt.Errorf("a statement beside the transaction: %w", err)
				}
				if _, err := db.BeginTx(ctx, nil); !errors.Is(err, idemsql.ErrTxOpen) {
					return fmt.Errorf("a transaction beside the transaction: %w", err)
				}
				if err := end.end(tx); err != nil {
					return err
				}
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if err := insert(ctx, tx, "kept"); err == nil {
				return errors.New("a note twice")
			}
			if err := tx.Rollback(); err != nil {
				return err
			}
			return insert(ctx, db, "goes on after an error that was rolled back")
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"kept", "kept, too", "goes on after an error that was rolled back"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

// Whether the context ends before the handler returns is a matter of time, and so no reason for
// an event to be done without the work.
func TestATransactionWhoseContextEndsIsNotEndedByThat(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		outcome, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			tx, err := db.BeginTx(short, nil)
			if err != nil {
				return err
			}
			if err := insert(ctx, tx, "undone"); err != nil {
				return err
			}
			cancel()
			for { // database/sql rolls back in a goroutine of its own
				if err := insert(ctx, db, "beside"); !errors.Is(err, idemsql.ErrTxOpen) {
					return err
				}
			}
		})
		if outcome != idem.Retrying || !errors.Is(err, idemsql.ErrTxNotEnded) {
			t.Errorf("%s, %v, want retrying, because the transaction was not ended", outcome, err)
		}
		if got := notes(t, pool); len(got) > 0 {
			t.Errorf("stayed: %q", got)
		}
	})
}

func TestATransactionThatIsEndedBeforeItsContextIsNoMistake(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			for _, end := range []struct {
				note string
				end  func(*sql.Tx) error
			}{{"kept", (*sql.Tx).Commit}, {"undone", (*sql.Tx).Rollback}} {
				short, cancel := context.WithCancel(ctx)
				tx, err := db.BeginTx(short, nil)
				if err == nil {
					err = insert(ctx, tx, end.note)
				}
				if err == nil {
					err = end.end(tx)
				}
				cancel()
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"kept"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

// The transactions of two DBs would be savepoints of one name, and a Rollback of the first would undo what
// was committed on the second.
func TestARunWhileAnotherOneUsesTheTransactionIsAnError(t *testing.T) {
	t.Parallel()
	const want = "another Run uses the event's transaction"
	for why, second := range map[string]func(context.Context, pgx.Tx, func(*sql.DB) error) error{
		"with the same transaction": idemsql.Run,
		"with a savepoint of it": func(ctx context.Context, tx pgx.Tx, f func(*sql.DB) error) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return idemsql.Run(ctx, tx, f) })
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
				outcome, err := deliverTx(t, pool, "1", func(ctx context.Context, tx pgx.Tx) error {
					return idemsql.Run(ctx, tx, func(first *sql.DB) error {
						undone, err := first.BeginTx(ctx, nil)
						if err != nil {
							return err
						}
						err = second(ctx, tx, func(db *sql.DB) error {
							committed, err := db.BeginTx(ctx, nil)
							if err != nil {
								return err
							}
							return errors.Join(insert(ctx, committed, "committed"), committed.Commit())
						})
						return errors.Join(err, undone.Rollback())
					})
				})
				if outcome != idem.Retrying || err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %v, want %q", outcome, err, want)
				}
			})
		})
	}
}

func TestARunMayFollowAnotherOne(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliverTx(t, pool, "1", func(ctx context.Context, tx pgx.Tx) error {
			func() {
				defer func() { _ = recover() }()
				_ = idemsql.Run(ctx, tx, func(*sql.DB) error { panic("oops") })
			}()
			return idemsql.Run(ctx, tx, func(db *sql.DB) error { return insert(ctx, db, "second") })
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"second"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRefusedIsWhatASavepointCannotDo(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	inTx(t, pool, func(ctx context.Context, db *sql.DB) error {
		if _, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable}); !errors.Is(err, idemsql.ErrIsolation) {
			t.Errorf("an isolation level: %v", err)
		}
		if _, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); !errors.Is(err, idemsql.ErrIsolation) {
			t.Errorf("read-only: %v", err)
		}
		if _, err := db.ExecContext(ctx, `select @a`, sql.Named("a", 1)); !errors.Is(err, idemsql.ErrNamedArgs) {
			t.Errorf("a named argument: %v", err)
		}
		result, err := db.ExecContext(ctx, `create table numbers as select 1 as n`)
		if err != nil {
			return err
		}
		if _, err := result.LastInsertId(); err == nil {
			t.Error("there is a last insert ID")
		}
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("rows affected: %d, %v", n, err)
		}
		return nil
	})
}
