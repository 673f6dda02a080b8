package idem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Replayed counts what became of replayed events.
type Replayed struct {
	Done      int // done now
	Failed    int // failed again, do not decode, or wait for an earlier event of their entity; still kept
	Unhandled int // no handler, or ignored: left as they are
}

// Replay processes events that were kept because no handler existed or because
// they failed, oldest first, one after the other: call it after deploying the
// missing handler or the fix. Each event runs like a delivery, in a transaction
// of its own with the record that it is done, so that it is safe to replay while
// deliveries arrive and from several processes at once. Two events of one entity
// are never processed at the same time, and an event with an earlier one of its
// entity that is pending or parked in an inbox has to wait for that.
//
// A failing event does not stop the others; its error is logged and observed, and
// that of its handler is stored. An unhandled event that fails is parked. Replay returns an error when ctx ends or Postgres is away, together
// with what it did until then.
//
// With StatePending among the filter's states it does the work of an inbox that
// has no workers any more. To have workers do it, see [Inbox.Requeue]; to see
// what would happen, [Common.DryReplay].
func (c *Common) Replay(ctx context.Context, f Filter) (Replayed, error) {
	return c.each(ctx, f, c.replay)
}

// each calls run for the events that f chooses.
func (c *Common) each(ctx context.Context, f Filter, run func(context.Context, Event, *Replayed) error) (total Replayed, err error) {
	for s, err := range c.List(ctx, f) {
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
func (c *Common) replay(ctx context.Context, e Event, total *Replayed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	outcome, err := c.replayOne(ctx, e)
	c.report(ctx, Observation{Stage: StageAttempt, Event: e, Outcome: outcome, Err: wrap(e, err), Duration: time.Since(start)})
	switch outcome {
	case Done:
		total.Done++
	case Parked:
		total.Failed++
	case Unhandled:
		total.Unhandled++
	case Duplicate: // done by another meanwhile
	default:
		return err
	}
	return nil
}

var errEarlier = errors.New("an earlier event of the same entity is not done, or one is being processed: replay or discard that first, or replay this again")

// replayOne is an attempt of a stored event. Every failure of the event's own is
// Parked: it is kept.
func (c *Common) replayOne(ctx context.Context, e Event) (Outcome, error) {
	work, err := c.route(e)
	switch {
	case err != nil:
		return Parked, err
	case work == nil || c.ignores(e):
		return Unhandled, nil
	}
	var found store.Found
	var promoted bool // workers look for it from time to time
	outcome, err := c.attempt(ctx, attempt{
		event: e, work: work,
		mark:      c.markStored(e, append([]string{store.Pending}, kept...)...),
		otherwise: func(b *pgx.Batch) { store.Look(b, e.row(), &found) },
		last:      promote(e, &promoted),
	})
	switch {
	case outcome == Duplicate && err != nil:
		return Retrying, err
	case outcome == Retrying && !pgtx.WorkFailed(err) && errors.Is(err, context.DeadlineExceeded) && c.answers(ctx):
		return Parked, errEarlier // it was waited for
	case outcome == Duplicate && (isKept(found.State) || found.State == store.Pending):
		return Parked, errEarlier
	case outcome == Retrying && pgtx.WorkFailed(err):
		finishing, cancel := pgtx.Finish(ctx)
		defer cancel()
		_, counting := store.CountFailure(finishing, c.pool, e.row(), errorText(err), math.MaxInt32, store.Parked)
		return Parked, errors.Join(err, counting)
	}
	return outcome, err
}

// answers tells whether Postgres does.
func (c *Common) answers(ctx context.Context) bool {
	return pgtx.Ask(ctx, c.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.Ping(ctx) }) == nil
}
