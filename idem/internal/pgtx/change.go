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
//
// If the connection breaks, the rest of the transaction in Postgres is ended in the background.
func Change(ctx context.Context, pool *pgxpool.Pool, do func(context.Context, pgx.Tx) error) error {
	broken, err := with(ctx, pool, func(conn *pgxpool.Conn) error {
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
	if broken != 0 {
		endLeft(ctx, pool, broken)
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
