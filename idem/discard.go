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
// Later events of their entities are then processed: by workers, or by [Processor.Run].
// Events that are being processed are left.
// It returns how many were discarded.
//
// Name what to discard: the zero Filter is refused.
func (c *Common) Discard(ctx context.Context, f Filter, reason string) (int64, error) {
	if f.isZero() {
		return 0, errDiscardAll
	}
	keys, err := c.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	return c.discardAll(ctx, keys, f.states(), reason)
}

var errDiscardAll = errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, States or times")

// discardAll gives up events by their row keys, if they are in one of states.
func (c *Common) discardAll(ctx context.Context, keys, states []string, reason string) (n int64, err error) {
	var lanes []string
	err = retryDeadlocks(ctx, func() error {
		return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) (err error) {
			lanes, err = store.Discard(ctx, tx, keys, states, errorText(errors.New("discarded: "+reason)), c.KeepPayloads)
			if err != nil {
				return err
			}
			return store.PromoteHeld(ctx, tx, lanes)
		})
	})
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	// Again, for what was held back while this took long: the commit of an earlier event may have
	// chosen a row to promote that is gone now. If this fails, the workers find it within a minute.
	_ = retryDeadlocks(ctx, func() error { return store.PromoteHeld(ctx, c.pool, lanes) })
	return int64(len(lanes)), nil
}
