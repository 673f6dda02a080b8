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

// Replayed counts the results of replayed events.
type Replayed struct {
	Done      int // done now
	Failed    int // failed again, do not decode, or wait for an earlier event of their entity; still kept
	Unhandled int // no handler, or ignored: left as they are

	// Overtaken are the events among those that are done of which a later one of their entity
	// was done before: by the provider's time, and then by arrival.
	Overtaken []Overtaken
}

// Overtaken is an event that ran although a later event of its entity was done before. No
// event is skipped for that: see that its handler's effect is right, a payment that is
// booked behind its refund for example.
type Overtaken struct {
	Event Event // without OccurredAt and Payload
	By    Event // the latest event that was done before it, without OccurredAt and Payload
	More  int   // the number of others that are later and were done before it
}

// String returns the two events in words.
func (o Overtaken) String() string {
	others := ""
	if o.More > 0 {
		others = fmt.Sprintf(", as were %d others", o.More)
	}
	return fmt.Sprintf("%s (%s) ran behind %s (%s), which was done before it%s", o.Event.ID, o.Event.Type, o.By.ID, o.By.Type, others)
}

// runAll runs the events that f chooses, by replay or dryReplay.
func (c *Common) runAll(
	ctx context.Context, f Filter, run func(context.Context, StoredEvent) (Outcome, error), ran func(Replayed, Event, error),
) (Replayed, error) {
	keys, err := c.find(ctx, f)
	if err != nil {
		return Replayed{}, fmt.Errorf("idem: listing events: %w", explain(err))
	}
	return c.runKeys(ctx, keys, Replayed{}, run, ran)
}

// runKeys runs events by their row keys, and calls ran after each, with the sum
// until then, and why the event failed, if it did. It adds to sum. It ends with the error of the
// first event with an outcome that is not counted: its cause would stop all others.
func (c *Common) runKeys(
	ctx context.Context, keys []string, sum Replayed, run func(context.Context, StoredEvent) (Outcome, error), ran func(Replayed, Event, error),
) (Replayed, error) {
	for s, err := range c.load(ctx, keys) {
		if err != nil {
			return sum, err
		}
		outcome, failure := Retrying, ctx.Err()
		if failure == nil {
			outcome, failure = run(ctx, s)
		}
		switch outcome {
		case Done:
			sum.Done++
		case Parked:
			sum.Failed++
		case Unhandled, Ignored:
			sum.Unhandled++
		case Duplicate: // done by another meanwhile
		default:
			return sum, fmt.Errorf("idem: replay stopped at %s %s: %w", s.Type, s.ID, failure)
		}
		ran(sum, s.Event, failure)
	}
	return sum, nil
}

// replay is an attempt of a stored event, traced and observed.
func (c *Common) replay(ctx context.Context, stored StoredEvent) (Outcome, error) {
	e := stored.Event
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	ctx, s := c.startSpan(ctx, StageAttempt, e, stored.Carrier, time.Now())
	outcome, err := c.replayOne(ctx, e)
	s.report(ctx, Observation{Event: e, Outcome: outcome, Err: wrap(e, err)})
	return outcome, err
}

var errEarlier = errors.New("an earlier event of the same entity is not done, or one is being processed: replay or discard that first, or replay this again")

// replayOne is an attempt of a stored event. Every failure of the event's own is
// Parked: it stays stored. An outage of the thing that all handlers depend on is Retrying, and changes nothing.
func (c *Common) replayOne(ctx context.Context, e Event) (Outcome, error) {
	work, err := c.route(e)
	switch {
	case err != nil:
		return Parked, errors.Join(err, c.endHeld(ctx, e, store.Parked, err))
	case work == nil || c.ignores(e):
		if err := c.endHeld(ctx, e, store.Unhandled, nil); err != nil {
			return Retrying, err
		}
		return Unhandled, nil
	}
	var found store.Found
	outcome, err := c.execute(ctx, attempt{
		event: e, work: work,
		mark:        c.markStored(e, append([]string{store.Pending}, repeatable...)...),
		ifNotMarked: func(b *pgx.Batch) { store.Look(b, e.row(), &found) },
		atCommit:    promote(e, nil),
	})
	failed := outcome == Retrying || outcome == Unknown
	switch {
	case outcome == Duplicate && (isRepeatable(found.State) || found.State == store.Pending):
		return Parked, errEarlier
	case !failed:
		return outcome, err
	case !pgtx.WorkFailed(err) && pgtx.TookTooLong(err) && c.answers(ctx):
		return Parked, errEarlier // it was waited for
	case !pgtx.WorkFailed(err) && pgtx.Unavailable(err), c.hasOutage():
		return Retrying, err // it would be the same with all others, and counts for none
	case !pgtx.WorkFailed(err):
		return Parked, err
	}
	if outcome, err = c.count(ctx, e, result{outcome: outcome, err: err}, math.MaxInt32); outcome != Done {
		return Parked, err
	}
	return Done, nil
}

// count counts an attempt that failed. One whose COMMIT was not answered has failed if the event is not done.
func (c *Common) count(ctx context.Context, e Event, r result, limit int) (Outcome, error) {
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	state, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (string, error) {
		return store.CountFailure(ctx, db, e.row(), errorText(r.err), limit, c.PassParked)
	})
	switch {
	case err != nil:
		return r.outcome, errors.Join(r.err, fmt.Errorf("the failure could not be counted: %w", err))
	case state != store.Done:
		return Outcome(state), r.err
	case r.outcome != Unknown:
		return Duplicate, r.err // done by another process, or by this handler with a COMMIT of its own
	}
	// CountFailure has written nothing, and so has not waited for the replica.
	found, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (store.Found, error) { return store.LookUp(ctx, db, e.row()) })
	if err != nil || found.State != store.Done {
		return Unknown, errors.Join(r.err, err)
	}
	return Done, nil
}

// answers reports whether Postgres does, also when ctx is over.
func (c *Common) answers(ctx context.Context) bool {
	return pgtx.Ask(context.WithoutCancel(ctx), c.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.Ping(ctx) }) == nil
}

// endHeld ends the turn of an event that cannot be processed, if it was held.
func (c *Common) endHeld(ctx context.Context, e Event, state string, cause error) error {
	_, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (struct{}, error) {
		return struct{}{}, store.EndHeld(ctx, db, e.row(), state, errorText(cause), c.PassParked)
	})
	return err
}
