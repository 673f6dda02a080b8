package idemsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

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

// bridge is a driver with connections that all are the one transaction of a handler.
//
// A limit of one connection would do without the lock. But a statement inside
// a loop over rows, or beside a transaction, would then wait for ever.
type bridge struct {
	ctx context.Context // the handler's
	tx  pgx.Tx

	mu     sync.Mutex
	over   bool  // Run has returned
	open   *conn // has the transaction that is open; nil if there is none
	broken error // a transaction could not be rolled back: its work is still there
	undone bool  // a transaction was rolled back because its context had ended, maybe by database/sql
}

// conn is a connection as database/sql sees it. Closing it does nothing.
type conn struct{ bridge *bridge }

func (b *bridge) Connect(context.Context) (driver.Conn, error) { return &conn{b}, nil }
func (b *bridge) Driver() driver.Driver                        { return b }

// Open makes a bridge a [driver.Driver]. It has nothing to open by name.
func (b *bridge) Open(string) (driver.Conn, error) {
	return nil, errors.New("idemsql: there is no data source name: use Run or Handler")
}

// end keeps later statements out. The error is for a function that otherwise succeeded.
func (b *bridge) end() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.broken != nil {
		return b.broken
	}
	if b.open != nil || b.undone {
		return ErrTxNotEnded
	}
	return nil
}

// use calls f with the transaction, for c alone.
func (b *bridge) use(c *conn, f func(pgx.Tx) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
		return ErrOver
	case b.open != nil && b.open != c:
		return ErrTxOpen
	}
	return f(b.tx)
}

// savepoint is the name of the one that a transaction on the DB is.
const savepoint = "idemsql"

// begin makes a savepoint for c.
func (b *bridge) begin(ctx context.Context, c *conn) error {
	return b.use(c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "savepoint "+savepoint); err != nil {
			return err
		}
		b.open = c
		return nil
	})
}

// commit keeps the work since the savepoint. After an error nothing is undone: the
// transaction stays aborted, so that it cannot be committed without the work.
func (b *bridge) commit(c *conn) error {
	return b.use(c, func(tx pgx.Tx) error {
		b.open = nil
		_, err := tx.Exec(b.ctx, "release savepoint "+savepoint)
		return err
	})
}

// rollback undoes the work since the savepoint. It uses the handler's context: that
// of BeginTx, which is begun, has ended if this is why database/sql rolls back.
func (b *bridge) rollback(c *conn, begun context.Context) error {
	return b.use(c, func(tx pgx.Tx) error {
		b.open, b.undone = nil, b.undone || begun.Err() != nil
		for _, sql := range []string{"rollback to savepoint " + savepoint, "release savepoint " + savepoint} {
			if _, err := tx.Exec(b.ctx, sql); err != nil {
				b.broken = fmt.Errorf("idemsql: a transaction could not be rolled back, return the error so that the event is retried: %w", err)
				return err
			}
		}
		return nil
	})
}

var (
	// ErrOver is returned by a statement on a DB after its function has returned.
	ErrOver = errors.New("idemsql: the handler has returned: execute all statements before, and wait for goroutines that use the DB")

	// ErrTxOpen is returned by a statement on a DB while a transaction is open on it.
	ErrTxOpen = errors.New("idemsql: a transaction is open on this DB: use it, or end it first")

	// ErrTxNotEnded is returned by [Run] if its function returned nil and left a transaction open, or if the context of
	// BeginTx ended before the transaction did: then database/sql has rolled it back.
	ErrTxNotEnded = errors.New("idemsql: a transaction was neither committed nor rolled back: end it before returning nil, and before its context ends")

	// ErrIsolation is returned by BeginTx for an isolation level or a read-only transaction.
	ErrIsolation = errors.New("idemsql: a transaction on this DB is a savepoint of the event's: it has no isolation level and is not read-only")

	// ErrNamedArgs is returned by a statement with a named argument.
	ErrNamedArgs = errors.New("idemsql: Postgres has no named arguments: use $1, $2, …")
)
