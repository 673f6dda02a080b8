package pgtx

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Commit executes last and commits, in one round trip; last may be nil. The
// error is a [*WorkError] if Postgres refused, and is [ErrUnknown] if its answer
// did not come: the transaction is committed then, or it is not.
func (t *Tx) Commit(ctx context.Context, last *pgx.Batch) error {
	ctx, cancel := Finish(ctx)
	defer cancel()
	t.ended = true
	err := t.protect(func() error { return t.commit(ctx, last) })
	if t.conn == nil {
		return &WorkError{err}
	}
	var refused *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return &WorkError{ErrAborted}
	case errors.As(err, &unsent), t.alive() && t.conn.Conn().PgConn().TxStatus() != 'I': // it did not come to COMMIT
		t.ended = false
		return &WorkError{err}
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR": // a deferred constraint, say
		return &WorkError{err}
	}
	t.terminate(ctx)
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

func (t *Tx) commit(ctx context.Context, last *pgx.Batch) error {
	if last == nil || last.Len() == 0 {
		return t.tx.Commit(ctx)
	}
	rolledBack := false
	last.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		rolledBack = tag.String() == "ROLLBACK"
		return nil
	})
	err := t.conn.SendBatch(ctx, last).Close()
	if err == nil && rolledBack {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// Check executes last as Commit would, and what Postgres checks only at COMMIT,
// but does not commit.
func (t *Tx) Check(ctx context.Context, last *pgx.Batch) error {
	if last == nil {
		last = &pgx.Batch{}
	}
	last.Queue("set constraints all immediate")
	if err := t.protect(func() error { return t.tx.SendBatch(ctx, last).Close() }); err != nil {
		return &WorkError{err}
	}
	return nil
}

// protect is [Protect] for what encodes the handler's arguments, which may be
// code of the application. It leaves the connection in no state to go on with.
func (t *Tx) protect(f func() error) (err error) {
	returned := false
	panicked := Protect(func() error {
		err = f()
		returned = true
		return nil
	})
	if returned {
		return err
	}
	closeNow(t.conn)
	t.conn = nil
	return panicked
}

// Rollback rolls back and then executes next, in one round trip.
func (t *Tx) Rollback(ctx context.Context, next func(*pgx.Batch)) error {
	ctx, cancel := Finish(ctx)
	defer cancel()
	t.ended = true
	b := &pgx.Batch{}
	b.Queue("rollback")
	next(b)
	return t.conn.SendBatch(ctx, b).Close()
}

// Close rolls back what is not committed and returns the connection to the pool.
func (t *Tx) Close(ctx context.Context) {
	if t.conn == nil {
		return
	}
	if t.tx != nil && !t.ended && t.alive() {
		ctx, cancel := Finish(ctx)
		defer cancel()
		_ = t.tx.Rollback(ctx) // pgx closes a connection that cannot roll back
	}
	if !t.alive() && !t.ended {
		t.terminate(ctx)
	}
	giveBack(t.conn)
	t.conn = nil
}

func (t *Tx) alive() bool { return !t.conn.Conn().IsClosed() }
