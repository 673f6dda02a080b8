package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const (
	// goOnEvery is the interval at which Run looks for held events that are due.
	goOnEvery = time.Second
	// freeEvery is the interval at which it looks for those that wait for nothing, as workers do.
	freeEvery = time.Minute
)

// Run goes on with the events that waited for a parked one of their entity, once that is
// done or discarded, until ctx ends: those of another process, too. [Serve] calls it.
// Without it they follow a parked event that is replayed, or that is delivered again to
// this process, but not one that is discarded, and not the work of a process that died.
//
// Call it in a goroutine, in any number of processes. It returns an error immediately if a
// setting makes no sense.
func (p *Processor) Run(ctx context.Context) error {
	err := checkSettings("processor", map[string]bool{"Timeout": p.Timeout > 0, "ParkAfter": p.ParkAfter > 0})
	if err := errors.Join(err, p.checkRetention()); err != nil {
		return err
	}
	var freed time.Time
	for failed := false; ctx.Err() == nil; sleep(ctx, goOnEvery) {
		err := pgtx.Protect(func() (err error) { // hooks of the pool are the application's
			if time.Since(freed) >= freeEvery {
				freed = time.Now()
				_, err = p.free(ctx, false)
			}
			_, replaying := p.replayHeld(ctx, Replayed{}, func(Replayed, Event, error) {})
			return errors.Join(err, replaying)
		})
		if err != nil && !failed && ctx.Err() == nil {
			p.logError(ctx, "webhook processor cannot go on with events that waited, and tries again", Event{}, err)
		}
		failed = err != nil
	}
	return nil
}

// goOn goes on with the events that waited for one that was done just now, beside the
// delivery: the provider does not wait for them.
func (p *Processor) goOn() {
	if p.going.Add(1) > 1 {
		return // the running one looks once more
	}
	go func() {
		for calls := p.going.Load(); ; calls = p.going.Load() {
			ctx := context.Background() // each attempt has its Timeout
			err := pgtx.Protect(func() error {
				_, err := p.replayHeld(ctx, Replayed{}, func(Replayed, Event, error) {})
				return err
			})
			if err != nil {
				p.logError(ctx, "webhook processor cannot go on with events that waited: they wait for Run, or a Replay", Event{}, err)
			}
			if p.going.CompareAndSwap(calls, 0) {
				return
			}
		}
	}()
}

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
// events were passed and made due. While another looks for the former, it leaves them to that, or waits for its end.
func (c *Common) free(ctx context.Context, wait bool) (int64, error) {
	passed, passing := c.passParked(ctx)
	stuck, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.PromoteStuck(ctx, db, c.source.Name(), wait)
	})
	return passed + stuck, errors.Join(passing, err)
}

// endHeld ends the turn of an event that cannot be processed, if it was held.
func (c *Common) endHeld(ctx context.Context, e Event, state string, cause error) error {
	_, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (struct{}, error) {
		return struct{}{}, store.EndHeld(ctx, db, e.row(), state, errorText(cause), c.PassParked)
	})
	return err
}
