package pgtx

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Change calls do with a transaction at Postgres's default isolation, not the
// session's, and commits it, or rolls it back if do returns an error. The error is
// [ErrUnknown] if COMMIT was sent and not answered, or if the answer may not count because the
// wait for the synchronous replica was broken off.
func Change(ctx context.Context, pool *pgxpool.Pool, do func(context.Context, pgx.Tx) error) error {
	var conn *pgxpool.Conn
	err := Protect(func() (err error) { // hooks of the pool are the application's
		if conn, err = pool.Acquire(ctx); err != nil {
			return err
		}
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // nothing, once it is committed
		if err := do(ctx, tx); err != nil {
			return err
		}
		return unsure(reliably(ctx, conn.Conn(), func() error { return tx.Commit(ctx) }))
	})
	if conn != nil {
		release(conn)
	}
	return err
}

// unsure returns the error of a COMMIT, as an [ErrUnknown] unless it is certain that nothing
// is committed.
func unsure(err error) error {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) || ok && refused.SeverityUnlocalized == "ERROR" {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
