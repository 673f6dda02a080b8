package idem

import (
	"context"
	"errors"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

const (
	// goOnEvery is the interval at which Run looks for held events that are due.
	goOnEvery = time.Second
	// freeEvery is the interval at which it looks for those that wait for nothing.
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
				_, err = p.free(ctx)
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
