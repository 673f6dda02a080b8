package idemsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

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
