package idem

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// maxTries is how often a handler is run for one delivery when Postgres asks
// to run its transaction again (40001, 40P01).
const maxTries = 4

// try works on an event until it is done, has failed, or time is up.
func (d *delivery) try(work Work) (Outcome, error) {
	for tries, runs := 1, 1; ; tries++ {
		outcome, err := d.attempt(work)
		twin := errors.Is(err, errTwin) // stepping back for one is no run of the handler
		switch {
		case err == nil || outcome == Unknown:
			return outcome, err
		case !twin && (runs >= maxTries || !retryable(err)), !pause(d.ctx, tries):
			return d.fail(err)
		case twin:
			continue
		}
		runs++
		// The handler may have changed the event it was given: decode it anew.
		d.event.Decoded = nil
		if work, err = d.p.source.Route(d.event); err != nil {
			return d.fail(err)
		}
	}
}

// attempt is one try: mark, work, commit, in one transaction.
func (d *delivery) attempt(work Work) (Outcome, error) {
	t, err := d.p.begin(d.ctx, d.event)
	if err != nil {
		return Failed, err
	}
	defer t.release()
	if !t.marked {
		return Duplicate, nil
	}
	ctx, scope := withScope(d.ctx, d.event)
	if err := t.work(ctx, work, d.hung); err != nil {
		return Failed, err
	}
	if outcome, err := t.commit(); err != nil {
		return outcome, err
	}
	t.release() // before the hooks: they may want a connection
	d.p.runHooks(ctx, scope)
	return Handled, nil
}

// pause waits a little longer after each try, with jitter so that those who
// met once do not meet again. It reports whether there is time for another.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 6), 500*time.Millisecond)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
