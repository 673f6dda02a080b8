package charges

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// begin runs do in a transaction.
func begin(ctx context.Context, db DB, do func(tx pgx.Tx) error) error {
	return again(ctx, db, func() error { return pgx.BeginFunc(ctx, db, do) })
}

// exec executes a statement.
func exec(ctx context.Context, db DB, sql string, args ...any) error {
	return again(ctx, db, func() error {
		_, err := db.Exec(ctx, sql, args...)
		return err
	})
}

// one returns the one value of a query.
func one[T any](ctx context.Context, db DB, sql string, args ...any) (v T, err error) {
	err = again(ctx, db, func() error {
		rows, _ := db.Query(ctx, sql, args...) // the rows have its error
		v, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
		return err
	})
	return v, err
}

const (
	mostRuns = 10                    // of a transaction that Postgres asks to run again
	stagger  = 20 * time.Millisecond // the longest pause before the second run; later ones are longer
)

// again calls do until Postgres does not ask for another run (40001, 40P01), as for a handler's transaction. In a
// transaction of the caller's, again calls do once: the caller has to repeat it.
func again(ctx context.Context, db DB, do func() error) error {
	for runs := 1; ; runs++ {
		err := do()
		e, ok := errors.AsType[*pgconn.PgError](err)
		if _, within := db.(pgx.Tx); within || !ok || e.Code != "40001" && e.Code != "40P01" || runs == mostRuns {
			return err
		}
		select {
		case <-time.After(rand.N(stagger * time.Duration(runs))):
		case <-ctx.Done():
			return err
		}
	}
}
