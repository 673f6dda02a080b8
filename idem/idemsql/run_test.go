package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemsql"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestWhatADBWritesIsCommittedWithItsEvent(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		for range 2 { // the second is a duplicate
			_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
				var id int64
				if err := db.QueryRowContext(ctx, `insert into notes (note) values ($1) returning id`, "direct").Scan(&id); err != nil {
					return err
				}
				s, err := db.PrepareContext(ctx, `insert into notes (note) values ($1)`)
				if err != nil {
					return err
				}
				defer s.Close()
				_, err = s.ExecContext(ctx, "prepared")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"direct", "prepared"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatADBWritesIsRolledBackWithItsEvent(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, test := range []struct {
		why  string
		f    func(ctx context.Context, db *sql.DB) error
		want error // nil: any
	}{
		{"the function fails", func(ctx context.Context, db *sql.DB) error {
			return errors.Join(insert(ctx, db, "x"), broken)
		}, broken},
		{"it panics", func(ctx context.Context, db *sql.DB) error {
			_ = insert(ctx, db, "x")
			panic("oops")
		}, nil},
		{"it panics in a transaction", func(ctx context.Context, db *sql.DB) error {
			tx, _ := db.BeginTx(ctx, nil)
			_ = insert(ctx, tx, "x")
			panic("oops")
		}, nil},
		{"a transaction is left open", func(ctx context.Context, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			return errors.Join(err, insert(ctx, tx, "x"))
		}, idemsql.ErrTxNotEnded},
		{"an error in SQL is swallowed", func(ctx context.Context, db *sql.DB) error {
			_ = insert(ctx, db, "x")
			_ = insert(ctx, db, "x")
			return nil
		}, nil},
		{"the error of a Commit is swallowed", func(ctx context.Context, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			_, _ = tx.ExecContext(ctx, `insert into nothing values (1)`)
			_ = tx.Commit()
			return err
		}, nil},
		{"COMMIT as SQL", func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "commit")
			return err
		}, nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
				outcome, err := deliver(t, pool, "1", test.f)
				if outcome != idem.Retrying || err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("%s, %v, want %v", outcome, err, test.want)
				}
				if got := notes(t, pool); len(got) > 0 {
					t.Errorf("stayed: %q", got)
				}
			})
		})
	}
}

func TestStatementsMayBeExecutedWhileRowsAreRead(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		inTx(t, pool, func(ctx context.Context, db *sql.DB) error {
			numbers, err := db.QueryContext(ctx, `select n from generate_series(1, 3) n`)
			if err != nil {
				return err
			}
			defer numbers.Close()
			for numbers.Next() {
				var n, same int
				if err := numbers.Scan(&n); err != nil {
					return err
				}
				if err := db.QueryRowContext(ctx, `select $1::int`, n).Scan(&same); err != nil || same != n {
					return fmt.Errorf("%d is %d: %w", n, same, err)
				}
			}
			leaked, err := db.QueryContext(ctx, `select 1`) // and never closed
			if err != nil {
				return err
			}
			_ = leaked
			return numbers.Err()
		})
	})
}

func TestGoroutinesMayShareADB(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			var all sync.WaitGroup
			errs := make([]error, 20)
			for i := range errs {
				all.Go(func() { errs[i] = insert(ctx, db, fmt.Sprint(i)) })
			}
			all.Wait()
			return errors.Join(errs...)
		})
		if got := notes(t, pool); err != nil || len(got) != 20 {
			t.Errorf("%d notes, %v", len(got), err)
		}
	})
}

func TestADBIsOverWhenItsFunctionReturns(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var leaked *sql.DB
	var conn *sql.Conn
	err = idemsql.Run(t.Context(), tx, func(db *sql.DB) (err error) {
		leaked = db
		conn, err = db.Conn(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaked.ExecContext(t.Context(), "select 1"); err == nil {
		t.Error("a DB works after its function")
	}
	if _, err := conn.ExecContext(t.Context(), "select 1"); !errors.Is(err, idemsql.ErrOver) {
		t.Errorf("a connection of the DB, after its function: %v", err)
	}
}

func TestHandlersKeepTheirEvent(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	type key struct{}
	h := idemsql.Handler(func(ctx context.Context, db *sql.DB, e *string) (err error) {
		if ctx.Value(key{}) != "kept" {
			t.Error("another context")
		}
		return db.QueryRowContext(ctx, `select $1`, *e+"!").Scan(e)
	})
	event := "paid"
	if err := h(context.WithValue(t.Context(), key{}, "kept"), tx, &event); err != nil || event != "paid!" {
		t.Error(event, err)
	}
}

func work(f func(context.Context, *sql.DB, string) error) idem.Work {
	h := idemsql.Handler(f)
	return func(ctx context.Context, tx pgx.Tx) error { return h(ctx, tx, "cus_1") }
}

// addPayment adds one payment in a transaction, and one beside it.
func addPayment(ctx context.Context, db *sql.DB, customer string) error {
	const add = `update balances set payments = payments + 1 where customer = $1`
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, add, customer); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, add, customer)
	return err
}
