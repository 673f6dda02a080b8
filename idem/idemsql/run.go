package idemsql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

var errOverlap = errors.New("idemsql: another Run uses the event's transaction: use its DB, or wait until it has returned")

// Run calls f with a DB that executes all its statements in tx. The DB is closed when Run
// returns; tx can be used beside it. Run returns f's error, [ErrTxNotEnded], or an error if
// a transaction on the DB could not be rolled back. While it has not returned, another Run with the same event's
// transaction returns an error: transactions on two DBs would be savepoints inside each other, and a Rollback
// of one would undo what was committed on the other.
//
// ctx is the handler's. It ends the DB's transactions, not its statements: those end with
// the context that they are given.
func Run(ctx context.Context, tx pgx.Tx, f func(*sql.DB) error) error {
	giveBack, ok := pgtx.Borrow(tx)
	if !ok {
		return errOverlap
	}
	defer giveBack()
	b := &bridge{ctx: ctx, tx: tx}
	db := sql.OpenDB(b)
	defer db.Close()
	returned := false
	defer func() {
		if !returned { // f panicked, or ended its goroutine
			_ = b.end()
		}
	}()
	err := f(db)
	returned = true
	return errors.Join(err, b.end())
}

// Handler returns a handler that calls f as [Run] does.
func Handler[E any](f func(context.Context, *sql.DB, E) error) func(context.Context, pgx.Tx, E) error {
	return func(ctx context.Context, tx pgx.Tx, e E) error {
		return Run(ctx, tx, func(db *sql.DB) error { return f(ctx, db, e) })
	}
}
