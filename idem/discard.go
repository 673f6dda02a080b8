package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Discard gives up the events that f chooses: they will not be processed, and a
// delivery of one is a duplicate. Their payloads go, unless KeepPayloads is set;
// the reason stays in the table, as their last error, until Prune forgets them.
// Later events of their entities are then processed: by workers, or by [Processor.Run].
// Events that are being processed are left.
// It returns how many were discarded.
//
// Name the events to discard: the zero Filter is refused.
func (c *Common) Discard(ctx context.Context, f Filter, reason string) (int64, error) {
	return c.DiscardFunc(ctx, f, reason, unrecorded)
}

// DiscardFunc is Discard for a caller that records it: changed gets the row keys of the discarded
// events in the transaction that discards them, which is rolled back if it returns an error.
func (c *Common) DiscardFunc(ctx context.Context, f Filter, reason string, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	if f.IsZero() {
		return 0, ErrDiscardAll
	}
	keys, err := c.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	return c.discardAll(ctx, keys, f.states(), reason, changed)
}

// ErrDiscardAll is the error of [Common.Discard] for the zero Filter.
var ErrDiscardAll = errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, Events, States or times")

// recordChange records the changes of a transaction, by row keys, in that transaction.
type recordChange = func(ctx context.Context, tx pgx.Tx, changed []string) error

func unrecorded(context.Context, pgx.Tx, []string) error { return nil }

// discardAll gives up events by their row keys, if they are in one of states.
func (c *Common) discardAll(ctx context.Context, keys, states []string, reason string, record recordChange) (n int64, err error) {
	var discarded, lanes []string
	err = c.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		discarded, lanes, err = store.Discard(ctx, tx, keys, states, errorText(errors.New("discarded: "+reason)), c.KeepPayloads)
		if err != nil {
			return err
		}
		if err := record(ctx, tx, discarded); err != nil {
			return err
		}
		return store.PromoteHeld(ctx, tx, lanes)
	})
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	// Again, for events that were held back while this took long: the commit of an earlier event may have
	// chosen a row to promote that is gone now. If this fails, the workers find it within a minute.
	_ = c.change(ctx, func(ctx context.Context, tx pgx.Tx) error { return store.PromoteHeld(ctx, tx, lanes) })
	return int64(len(discarded)), nil
}

// change runs a transaction that changes many rows. It runs again after a deadlock.
func (c *Common) change(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return retryDeadlocks(ctx, func() error {
		_, err := timed(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, pgtx.Change(ctx, c.pool, do)
		})
		return err
	})
}
