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
	// promoteEvery is the interval at which Run looks for events that wait for nothing, as workers do.
	promoteEvery = time.Minute
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
	var promoted time.Time
	for failed := false; ctx.Err() == nil; sleep(ctx, goOnEvery) {
		err := pgtx.Protect(func() (err error) { // hooks of the pool are the application's
			if time.Since(promoted) >= promoteEvery {
				promoted = time.Now()
				_, err = p.promoteAll(ctx, false)
			}
			return errors.Join(err, p.replayHeld(ctx))
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
			err := pgtx.Protect(func() error { return p.replayHeld(ctx) })
			if err != nil {
				p.logError(ctx, "webhook processor cannot go on with events that waited: they wait for Run, or a Replay", Event{}, err)
			}
			if p.going.CompareAndSwap(calls, 0) {
				return
			}
		}
	}()
}

// replayHeld replays the held events that are due, see [replaying.held].
func (c *Common) replayHeld(ctx context.Context) error {
	return (&replaying{common: c, run: c.replay}).held(ctx)
}

// passParked frees the events that wait for parked ones, if PassParked is set. It returns how many
// were passed.
func (c *Common) passParked(ctx context.Context) (passed int64, err error) {
	for more := c.PassParked; more; {
		var lanes []string
		limited, cancel := context.WithTimeout(ctx, c.Timeout)
		err := c.change(limited, func(ctx context.Context, tx pgx.Tx) (err error) {
			if lanes, err = store.Pass(ctx, tx, c.source.Name(), atOnce); err != nil {
				return err
			}
			return store.PromoteHeld(ctx, tx, lanes)
		})
		cancel()
		if err != nil {
			return passed, fmt.Errorf("idem: passing parked events: %w", explain(err))
		}
		passed += int64(len(lanes))
		more = len(lanes) == atOnce
	}
	return passed, nil
}

// promoteAll makes events due that wait for nothing, and those that PassParked lets pass. It returns how many
// events were passed and made due. While another process looks for the former, wait has it wait for the end of
// that look, instead of leaving them to it.
func (c *Common) promoteAll(ctx context.Context, wait bool) (int64, error) {
	passed, passing := c.passParked(ctx)
	stuck, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.PromoteStuck(ctx, db, c.source.Name(), wait)
	})
	return passed + stuck, errors.Join(passing, err)
}

// endHeld ends the turn of an event that cannot be processed, if it was held.
func (c *Common) endHeld(ctx context.Context, e Event, state string, cause error) error {
	return exec(ctx, c.pool, func(ctx context.Context, db store.DB) error {
		return store.EndHeld(ctx, db, e.row(), state, errorText(cause), c.PassParked)
	})
}
