package idemsql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
)

var (
	// ErrOver is returned by a statement on a DB whose function has returned.
	ErrOver = errors.New("idemsql: the handler has returned: execute all statements before, and wait for goroutines that use the DB")

	// ErrTxOpen is returned by a statement on a DB while a transaction is open on it.
	ErrTxOpen = errors.New("idemsql: a transaction is open on this DB: use it, or end it first")

	// ErrTxNotEnded is returned by [Run] if its function returned nil and left a transaction open.
	ErrTxNotEnded = errors.New("idemsql: a transaction was neither committed nor rolled back: end it before returning nil")

	// ErrIsolation is returned by BeginTx for an isolation level or a read-only transaction.
	ErrIsolation = errors.New("idemsql: a transaction on this DB is a savepoint of the event's: it has no isolation level and is not read-only")

	// ErrNamedArgs is returned by a statement with a named argument.
	ErrNamedArgs = errors.New("idemsql: Postgres has no named arguments: use $1, $2, …")
)

// Run calls f with a DB whose statements are all executed in tx. The DB is closed when Run
// returns; tx can be used beside it. Run returns f's error, [ErrTxNotEnded], or an error if
// a transaction on the DB could not be rolled back.
//
// ctx is the handler's. It ends the DB's transactions, not its statements: those end with
// the context that they are given.
func Run(ctx context.Context, tx pgx.Tx, f func(*sql.DB) error) error {
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
