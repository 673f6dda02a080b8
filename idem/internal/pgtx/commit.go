package pgtx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Commit executes what the handler has declared and what is ours, and commits, in one
// round trip; both may be empty. The error is a [*WorkError] if Postgres refused, and
// is [ErrUnknown] if its answer did not come, or may not count because the wait for the
// synchronous replica was broken off: the transaction is committed then, or it is not.
func (t *Tx) Commit(ctx context.Context, declared, ours *pgx.Batch) error {
	ctx, cancel := Finish(ctx)
	defer cancel()
	last, err := t.join(ctx, declared, ours)
	if err == nil && last.Len() > 0 && t.handler.large {
		err = t.execute(ctx, last)
		last = &pgx.Batch{}
	}
	if err != nil {
		return err
	}
	t.ended = true
	err = t.protect(func() error { return reliably(ctx, t.conn, func() error { return t.commit(ctx, last) }) })
	if t.conn == nil { // the application's code panicked, see protect
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
	if !t.alive() {
		t.terminate(ctx)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

func (t *Tx) commit(ctx context.Context, last *pgx.Batch) error {
	if last.Len() == 0 {
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

// Check executes both as Commit would, and what Postgres checks only at COMMIT,
// but does not commit.
func (t *Tx) Check(ctx context.Context, declared, ours *pgx.Batch) error {
	last, err := t.join(ctx, declared, ours)
	if err != nil {
		return err
	}
	last.Queue("set constraints all immediate")
	return t.execute(ctx, last)
}

// join returns what is left to be executed with COMMIT: both, unless what the handler
// declared has to be executed before. Behind a statement that ends the transaction,
// COMMIT would say that all is well; and where the handler has set another search path
// or role, ours would not find its tables.
func (t *Tx) join(ctx context.Context, declared, ours *pgx.Batch) (last *pgx.Batch, err error) {
	unseen := slices.ContainsFunc(declared.QueuedQueries, isUnseen)
	t.handler.note(declared.QueuedQueries)
	moved := t.handler.raw || unseen || t.handler.effects&moves != 0
	if t.Marked() && (moved || t.handler.effects&calls != 0) {
		t.restore(declared)
	}
	if unseen || moved && ours.Len() > 0 && t.Marked() {
		err = t.execute(ctx, declared)
		declared = &pgx.Batch{}
	}
	declared.QueuedQueries = append(declared.QueuedQueries, ours.QueuedQueries...)
	return declared, err
}

// restore puts back what the next event on the connection depends on, or this one's
// commit: the search path, in which another schema has tables of its own, the role, and
// the wait for the disk and the replica.
func (t *Tx) restore(b *pgx.Batch) {
	const restore = `
select case when current_setting('role') <> $1 then set_config('role', $1, false) end,
	case when current_setting('search_path') <> $2 then set_config('search_path', $2, false) end,
	case when current_setting('synchronous_commit') <> $3 then set_config('synchronous_commit', $3, true) end`
	b.Queue(restore, t.session.Role, t.session.SearchPath, t.session.SynchronousCommit)
}

// execute executes b before COMMIT, which is not b's to send.
func (t *Tx) execute(ctx context.Context, b *pgx.Batch) error {
	err := t.protect(func() error { return t.tx.SendBatch(ctx, b).Close() })
	if err == nil {
		err = t.verdict(ctx)
	}
	if err != nil {
		return &WorkError{err}
	}
	return nil
}

// Rollback rolls back and then executes next, in one round trip.
func (t *Tx) Rollback(ctx context.Context, next func(*pgx.Batch)) error {
	ctx, cancel := Finish(ctx)
	defer cancel()
	t.ended = true
	b := &pgx.Batch{}
	b.Queue("rollback")
	next(b)
	return t.protect(func() error { return reliably(ctx, t.conn, func() error { return t.conn.SendBatch(ctx, b).Close() }) })
}
