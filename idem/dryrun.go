package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// CanaryType is the event type that a canary delivers, see package canary. No provider
// has it: a genuine delivery of it that is not a dry run is an event of an unknown type.
const CanaryType = "paghooks.canary"

// DryRunHeader, in a genuine delivery, asks for [Common.DryRun] instead of
// the work: whether the handlers of a running application are sound, tried
// through its network, verification and database. Nothing is stored, so the
// answer is 503 in any case: no provider takes it for an acknowledgement. Its
// body has the outcome: {"received":false,"dry_run":"done"}. An event of a
// canary needs no handler.
const DryRunHeader = "Idem-Dry-Run"

// DryRun runs the handler of an event in a transaction that is always rolled
// back, with the record of an event like it, and returns the outcome that the first
// delivery of it would have if no earlier event of its entity is parked. Nothing is
// stored, also of an event that is stored; an effect that
// the handler has outside of its transaction is real, unless it asks
// [IsDryRun]. Functions for after the commit do not run. Deliveries of the event do not
// wait for it, unless they need rows that the handler has locked.
func (c *Common) DryRun(ctx context.Context, e Event) (Outcome, error) {
	return c.dry(ctx, e, c.dryRun)
}

// dry calls run, a dry run of a handler or of a canary, within Timeout.
func (c *Common) dry(ctx context.Context, e Event, run func(context.Context, Event) (Outcome, error)) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	e, err := c.normalize(e)
	outcome := Retrying
	if err == nil {
		outcome, err = run(ctx, e)
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
	return c.execute(ctx, attempt{event: e, work: work, dry: true, mark: c.markDry(e)})
}

// markDry marks as markNew does, under an ID and an entity that no event has: the row of e
// would have a delivery of it wait until the dry run is rolled back, and so would the row
// that it waits for.
func (c *Common) markDry(e Event) func(*pgx.Batch, *pgtx.Session) {
	e.ID, e.Key = "dry run "+rand.Text(), ""
	return c.markNew(e)
}

// DryReplay returns the result that [Common.Replay] would have, by a [Common.DryRun] of each
// event, for itself: one that needs rows of another fails.
func (c *Common) DryReplay(ctx context.Context, f Filter) (Replayed, error) {
	return c.DryReplayFunc(ctx, f, func(Replayed, Event, error) {})
}

// DryReplayFunc is DryReplay with a report: see [Common.ReplayFunc].
func (c *Common) DryReplayFunc(ctx context.Context, f Filter, ran func(sum Replayed, e Event, failure error)) (Replayed, error) {
	return c.withOvertaken(ctx, ran, func(ran func(Replayed, Event, error)) (Replayed, error) { return c.runAll(ctx, f, c.dryReplay, ran) })
}

// dryReplay is a dry run of a stored event. Every failure of the event's own is
// Parked, as by a replay.
func (c *Common) dryReplay(ctx context.Context, s StoredEvent) (Outcome, error) {
	outcome, err := c.DryRun(ctx, s.Event)
	switch {
	case ctx.Err() != nil:
		return Retrying, ctx.Err()
	case outcome == Retrying, outcome == Unknown:
		outcome = Parked
	}
	return outcome, errors.Unwrap(err) // without the event's name, as a replay's error is
}

// dryDelivery handles a delivery with [DryRunHeader]: a dry run of the event's handler,
// or of its substitute in a canary's.
func (c *Common) dryDelivery(ctx context.Context, d Delivery) (Outcome, error) {
	if d.Event.Type == CanaryType {
		return c.dry(ctx, d.Event, c.tryCanary)
	}
	return c.DryRun(ctx, d.Event)
}

// NoteCanary records that a canary's delivery has come through a broker. It is for code that
// consumes for the receiver: package relay calls it.
func (c *Common) NoteCanary(ctx context.Context) error {
	_, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (struct{}, error) {
		return struct{}{}, store.NoteCanary(ctx, db, c.source.Name(), CanaryType)
	})
	if err != nil {
		return fmt.Errorf("idem: recording a canary: %w", explain(err))
	}
	return nil
}

// LastCanary returns when a canary's delivery last came through a broker to any consumer of the
// source, by the database's clock; the zero time for never. It is for the field Arrived of a canary.
func (c *Common) LastCanary(ctx context.Context) (time.Time, error) {
	at, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (time.Time, error) {
		return store.LastCanary(ctx, db, c.source.Name())
	})
	if err != nil {
		return at, fmt.Errorf("idem: looking for a canary: %w", explain(err))
	}
	return at, nil
}

// tryCanary marks a canary's event, does nothing, and rolls back.
func (c *Common) tryCanary(ctx context.Context, e Event) (Outcome, error) {
	nothing := func(context.Context, pgx.Tx) error { return nil }
	return c.runOnce(ctx, attempt{event: e, work: nothing, dry: true, mark: c.markDry(e)})
}
