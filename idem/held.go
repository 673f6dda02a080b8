package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// replayHeld replays the held events that are due, and those that become due by
// that, to the end of each lane or until one fails. It adds to sum, and calls ran after each.
func (c *Common) replayHeld(ctx context.Context, sum Replayed, ran func(Replayed, Event, error)) (Replayed, error) {
	for last := (store.Place{}); ; { // further each time: one that is left as it was is not found again
		var keys []string
		next, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (next store.Place, err error) {
			keys, next, err = store.FindHeld(ctx, db, c.source.Name(), last, atOnce)
			return next, err
		})
		if err != nil {
			return sum, fmt.Errorf("idem: listing events: %w", explain(err))
		}
		if next == last {
			return sum, nil
		}
		last = next
		if sum, err = c.runKeys(ctx, keys, sum, c.replay, ran); err != nil {
			return sum, err
		}
	}
}

// passParked frees the events that wait for parked ones, if PassParked is set. It returns how many
// were passed.
func (c *Common) passParked(ctx context.Context) (passed int64, err error) {
	for more := c.PassParked; more; {
		var lanes []string
		err := retryDeadlocks(ctx, func() error {
			ctx, cancel := context.WithTimeout(ctx, c.Timeout)
			defer cancel()
			return pgtx.Change(ctx, c.pool, func(ctx context.Context, tx pgx.Tx) (err error) {
				if lanes, err = store.Pass(ctx, tx, c.source.Name(), atOnce); err != nil {
					return err
				}
				return store.PromoteHeld(ctx, tx, lanes)
			})
		})
		if err != nil {
			return passed, fmt.Errorf("idem: passing parked events: %w", explain(err))
		}
		passed += int64(len(lanes))
		more = len(lanes) == atOnce
	}
	return passed, nil
}

// free makes events due that wait for nothing, and those that PassParked lets pass. It returns how many
// events were passed and made due.
func (c *Common) free(ctx context.Context) (int64, error) {
	passed, passing := c.passParked(ctx)
	stuck, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.PromoteStuck(ctx, db, c.source.Name())
	})
	return passed + stuck, errors.Join(passing, err)
}
