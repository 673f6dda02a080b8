package idem

import (
	"context"
	"fmt"
)

// DryRunHeader, in a genuine delivery, asks for [Common.DryRun] instead of
// the work: whether the handlers of a running application are sound, tried
// through its network, verification and database. Nothing is stored, so the
// answer is 503 in any case: no provider takes it for an acknowledgement. Its
// body has the outcome: {"received":false,"dry_run":"done"}.
const DryRunHeader = "Idem-Dry-Run"

// DryRun runs the handler of an event in a transaction that is always rolled
// back, with the record of the event, and returns the outcome that the first
// delivery of it would have. Nothing is stored, also of an event that is stored; what
// the handler does outside of its transaction does happen, unless it asks
// [IsDryRun]. Functions for after the commit do not run.
func (c *Common) DryRun(ctx context.Context, e Event) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	e, err := c.normalize(e)
	outcome := Retrying
	if err == nil {
		outcome, err = c.dryRun(ctx, e)
	}
	if err != nil {
		err = fmt.Errorf("idem: dry run of %s %s: %w", e.Type, e.ID, err)
	}
	return outcome, err
}

func (c *Common) dryRun(ctx context.Context, e Event) (Outcome, error) {
	if c.ignores(e) {
		return Ignored, nil
	}
	work, err := c.route(e)
	switch {
	case err != nil:
		return Parked, err
	case work == nil:
		return Unhandled, nil
	}
	return c.attempt(ctx, attempt{event: e, work: work, dry: true, mark: c.markNew(e)})
}

// DryReplay returns what [Common.Replay] would do, by a [Common.DryRun] of each
// event, for itself: one that needs what another writes fails.
func (c *Common) DryReplay(ctx context.Context, f Filter) (Replayed, error) {
	return c.each(ctx, f, func(ctx context.Context, e Event, total *Replayed) error {
		switch outcome, _ := c.DryRun(ctx, e); outcome {
		case Done:
			total.Done++
		case Unhandled, Ignored:
			total.Unhandled++
		default:
			total.Failed++
		}
		return ctx.Err()
	})
}
