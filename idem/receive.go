package idem

import (
	"context"
	"time"

	"github.com/paghooks/paghooks/idem/internal/wire"
)

// result is the result of one delivery.
type result struct {
	outcome  Outcome
	conflict bool // another body is stored with the event's id
	err      error
}

// Delivery is a verified event that has arrived.
type Delivery struct {
	Event  Event
	DryRun bool // it has [DryRunHeader]: nothing may be stored, and it is not for Receive

	begun time.Time // when its first byte came; zero if it did not come by HTTP
}

// Receive calls process with the event, once it can be stored for any body, and
// reports the result to Logger, Observe and Tracer. process has limit to finish; the
// sender's disconnecting does not cancel it. For a type that the source ignores it is not
// called. The error is nil if the outcome is acknowledged.
func (in *Endpoint) Receive(
	ctx context.Context, d Delivery, limit time.Duration, process func(context.Context, Event) (Outcome, error),
) (Outcome, error) {
	return in.receive(ctx, d, limit, func(ctx context.Context, e Event) result {
		outcome, err := process(ctx, e)
		return result{outcome: outcome, err: err}
	})
}

// receive is Receive for a process that may find a conflict.
func (in *Endpoint) receive(
	ctx context.Context, d Delivery, limit time.Duration, process func(context.Context, Event) result,
) (Outcome, error) {
	start := d.begun
	if start.IsZero() {
		start = time.Now()
	}
	e, err := in.normalize(d.Event)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	ctx, s := in.startSpan(ctx, StageDelivery, e, "", start)
	var r result
	switch {
	case err != nil:
		r = result{outcome: Retrying, err: err}
	case in.ignores(e):
		r = result{outcome: Ignored}
	default:
		r = process(ctx, e)
	}
	err = wrap(e, r.err)
	s.report(ctx, Observation{Event: e, Outcome: r.outcome, Relayed: wire.SinceRelayed(ctx, start), Conflict: r.conflict, Err: err})
	if r.outcome.Acknowledged() {
		return r.outcome, nil
	}
	return r.outcome, err
}
