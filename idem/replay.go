package idem

import (
	"context"
	"errors"
	"fmt"
)

// Replayed counts what became of replayed events.
type Replayed struct {
	Done      int // done now
	Failed    int // failed again; still kept, with the new error
	Unhandled int // no handler, or ignored: left as they are
}

// Replay works on events that were kept because no handler existed or because
// their work failed, oldest first, one after the other: call it after deploying
// the missing handler or the fix. Each event runs like a delivery, in a
// transaction of its own with the record that it is done, so that it is safe
// to replay while deliveries arrive and from several processes at once.
//
// A failing event does not stop the others; its error is stored, logged and
// observed. Replay returns an error when ctx ends or Postgres is away, together
// with what it did until then.
//
// With StatePending among the filter's states it does the work of an inbox that
// has no workers any more. To have workers do it, see [Inbox.Requeue]; to see
// what would happen, [Processor.DryReplay].
func (p *Processor) Replay(ctx context.Context, f Filter) (Replayed, error) {
	return p.each(ctx, f, p.replay)
}

// each has run work on the events that f chooses.
func (p *Processor) each(ctx context.Context, f Filter, run func(context.Context, Event, *Replayed) error) (total Replayed, err error) {
	for s, err := range p.List(ctx, f) {
		if err != nil {
			return total, err
		}
		if err := run(ctx, s.Event, &total); err != nil {
			return total, fmt.Errorf("idem: replay stopped at %s %s: %w", s.Type, s.ID, err)
		}
	}
	return total, nil
}

// replay runs one event. The error is one that would stop every other event.
func (p *Processor) replay(ctx context.Context, e Event, total *Replayed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	work, err := p.source.Route(e)
	switch {
	case errors.Is(err, ErrIgnored), err == nil && work == nil:
		total.Unhandled++
		return nil
	case err != nil: // it does not decode, still
		total.Failed++
		return nil
	}
	var ran *workError
	switch outcome, err := p.await(ctx, e, work); {
	case outcome == Done:
		total.Done++
	case outcome == Parked, outcome == Pending, outcome == Retrying && errors.As(err, &ran) && !leaving(err):
		total.Failed++
	case outcome == Retrying, outcome == Unknown:
		return err
	}
	return nil
}
