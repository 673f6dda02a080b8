package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Discard gives up the events that f chooses: they will not be processed, and a
// delivery of one is a duplicate. Their payloads go, unless KeepPayloads is set;
// the reason stays in the table, as their last error, until Prune forgets them.
// Later events of their keys go on. Events that are being processed are left.
// It returns how many were discarded.
//
// Name what to discard: the zero Filter is refused.
func (c *Common) Discard(ctx context.Context, f Filter, reason string) (n int64, err error) {
	if f.States == nil && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil {
		return 0, errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes or States")
	}
	keys, err := c.find(ctx, f)
	if err == nil {
		err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) (err error) {
			n, err = store.Discard(ctx, tx, keys, f.states(), errorText(errors.New("discarded: "+reason)), c.KeepPayloads)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	return n, nil
}
