package idem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Accept runs one verified event without HTTP, for deliveries that arrive
// through a queue or a router of the application's own. Name the event with
// the provider's Identify:
//
//	outcome, err := processor.Accept(ctx, asaas.Identify(body))
//
// A nil error means that the event is stored or was before, and need not come
// again. With an error it must be delivered again: the work was rolled back, or
// ([Unknown]) the answer to COMMIT was lost.
//
// The event is worked on even if ctx is cancelled meanwhile, until Timeout.
func (p *Processor) Accept(ctx context.Context, e Event) (Outcome, error) {
	start := time.Now()
	e = p.normalize(e)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Timeout)
	defer cancel()
	outcome, err := p.accept(ctx, e)
	if err != nil {
		err = fmt.Errorf("idem: %s %s: %w", e.Type, e.ID, err)
	}
	p.report(ctx, Observation{Event: e, Outcome: outcome, Err: err, Duration: time.Since(start)})
	if outcome.Stored() {
		return outcome, nil
	}
	return outcome, err
}

func (p *Processor) accept(ctx context.Context, e Event) (Outcome, error) {
	work, err := p.source.Route(e)
	switch {
	case errors.Is(err, ErrIgnored):
		return Ignored, nil
	case err != nil:
		return p.keep(ctx, e, StateFailed, err)
	case work == nil:
		return p.keep(ctx, e, StateUnhandled, nil)
	}
	return p.handle(ctx, e, work)
}

// keep stores an event that no handler can work on now, with its payload.
func (p *Processor) keep(ctx context.Context, e Event, state State, cause error) (Outcome, error) {
	stored, err := storeKept(ctx, p.pool, e, state, cause)
	switch {
	case err != nil:
		return Failed, fmt.Errorf("storing the event: %w", explain(err))
	case !stored:
		return Duplicate, nil
	case state == StateFailed:
		return Parked, cause
	}
	return Unhandled, nil
}

// handle makes all deliveries of one event that arrive in this process while
// it is worked on share one attempt and its result: a storm of one event takes
// one connection.
func (p *Processor) handle(ctx context.Context, e Event, work Work) (Outcome, error) {
	f, first := p.flights.join(e)
	if !first {
		return f.wait(ctx)
	}
	f.outcome, f.err = Failed, errInterrupted // what the others see if the handler ends this goroutine
	defer p.flights.land(e, f)
	f.outcome, f.err = p.try(ctx, e, work)
	return f.outcome, f.err
}
