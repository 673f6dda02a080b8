package idem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// maxTries is how often a handler is run for one delivery when Postgres asks
// to run its transaction again (40001, 40P01).
const maxTries = 4

// try works on an event until it is done, has failed, or time is up.
func (p *Processor) try(ctx context.Context, e Event, work Work) (Outcome, error) {
	for n := 1; ; n++ {
		outcome, err := p.attempt(ctx, e, work)
		switch {
		case err == nil:
			return outcome, nil
		case outcome == Unknown:
			return Unknown, err
		case !errors.Is(err, errTwin) && (n >= maxTries || !retryable(err)):
			return p.fail(ctx, e, err)
		}
		if !pause(ctx, n) {
			return p.fail(ctx, e, err)
		}
		// The handler may have changed the event it was given: decode it anew.
		e.Decoded = nil
		if work, err = p.source.Route(e); err != nil {
			return p.fail(ctx, e, err)
		}
	}
}

// attempt is one try: mark, work, commit, in one transaction.
func (p *Processor) attempt(ctx context.Context, e Event, work Work) (Outcome, error) {
	t, err := p.begin(ctx, e)
	if err != nil {
		return Failed, err
	}
	defer t.release()
	if !t.marked {
		return Duplicate, nil
	}
	handlerCtx, hooks := withHooks(withEvent(ctx, e))
	if err := t.work(handlerCtx, work); err != nil {
		return Failed, err
	}
	if t.seen && !p.KeepPayloads {
		if _, err := t.conn.Exec(ctx, dropPayload, e.Source, e.Scope, e.ID); err != nil {
			return Failed, err
		}
	}
	if outcome, err := t.commit(ctx); err != nil {
		return outcome, err
	}
	t.release() // before the hooks: they may want a connection
	p.runHooks(ctx, e, hooks)
	return Handled, nil
}

// fail counts a failed delivery, unless the database and not the handler was
// at fault, and parks the event when it has failed too often.
func (p *Processor) fail(ctx context.Context, e Event, cause error) (Outcome, error) {
	if !countable(cause) {
		return Failed, cause
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	state, err := storeFailure(ctx, p.pool, e, cause, p.ParkAfter)
	switch {
	case err != nil:
		return Failed, errors.Join(cause, fmt.Errorf("the failure could not be counted: %w", err))
	case state == StateFailed:
		return Parked, cause
	case state == StateDone:
		return Duplicate, cause // done by another process, or by this handler with a COMMIT of its own
	}
	return Failed, cause
}

// pause waits a little longer after each try, with jitter so that those who
// met once do not meet again. It reports whether there is time for another.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<tries, 500*time.Millisecond)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
