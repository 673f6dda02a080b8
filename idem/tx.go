package idem

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ownedTx is the transaction as a handler sees it: pgx's own, but for its end,
// which is the processor's. Savepoints (Begin) are the handler's to end.
type ownedTx struct{ pgx.Tx }

func (ownedTx) Commit(context.Context) error   { return ErrTxOwned }
func (ownedTx) Rollback(context.Context) error { return ErrTxOwned }
