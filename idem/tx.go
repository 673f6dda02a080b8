package idem

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ownedTx is the transaction as a handler sees it: pgx's own, but for its end,
// which is the processor's. It is closed once the handler has returned: its
// connection, which Conn returns as it is, may be in the transaction of another
// event by then.
type ownedTx struct{ lent }

func lend(tx pgx.Tx) ownedTx { return ownedTx{lent{tx, new(atomic.Bool)}} }

func (ownedTx) Commit(context.Context) error   { return ErrTxOwned }
func (ownedTx) Rollback(context.Context) error { return ErrTxOwned }

// lent is a transaction, or a savepoint in one, until it is over.
type lent struct {
	tx   pgx.Tx
	over *atomic.Bool
}

// closedTx is what pgx has for a transaction that is over.
var closedTx = func() pgx.Tx {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	return pgx.FailedBatchResults(b, pgx.ErrTxClosed).Tx()
}()

func (l lent) open() pgx.Tx {
	if l.over.Load() {
		return closedTx
	}
	return l.tx
}

// Begin makes a savepoint, which is the handler's to end.
func (l lent) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := l.open().Begin(ctx)
	if err != nil {
		return nil, err
	}
	return lent{tx, l.over}, nil
}

func (l lent) Commit(ctx context.Context) error   { return l.open().Commit(ctx) }
func (l lent) Rollback(ctx context.Context) error { return l.open().Rollback(ctx) }
func (l lent) Conn() *pgx.Conn                    { return l.tx.Conn() }
func (l lent) LargeObjects() pgx.LargeObjects     { return l.open().LargeObjects() }

func (l lent) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	return l.open().CopyFrom(ctx, table, columns, rows)
}

func (l lent) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return l.open().SendBatch(ctx, b)
}

func (l lent) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return l.open().Prepare(ctx, name, sql)
}

func (l lent) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return l.open().Exec(ctx, sql, args...)
}

func (l lent) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return l.open().Query(ctx, sql, args...)
}

func (l lent) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return l.open().QueryRow(ctx, sql, args...)
}
