package idem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Replay processes events that were stored because no handler existed or because
// they failed, by the provider's time and then by arrival, one after the other. Call it after deploying the
// missing handler or the fix. Each event runs like a delivery, in a transaction
// of its own with the record that it is done, so that it is safe to replay while
// deliveries arrive and from several processes at once. Two stored events of one
// entity are never processed at the same time, and an event with an earlier one of
// its entity that is pending or parked has to wait for that. So has a new event that a
// Processor receives meanwhile: it waits while the earlier one is being processed.
//
// Events that were parked only because they waited for one that is done now follow it,
// in order, whether or not f chooses them, until one fails. They are counted, too.
//
// A failing event does not stop the others; its error is logged and observed, and
// that of its handler is stored. An unhandled event that fails is parked. Replay
// returns an error when ctx ends or Postgres is unavailable, together with the counts until then.
//
// An event runs also if a later one of its entity was done before, where that did not wait
// for it or came earlier: it may be money. Replayed.Overtaken has those events, for a person to
// look at. To find them Replay reads the rows of all events at its end, once, ten million in
// a second or two; see operator.Operator.ScanOfKey for an index.
//
// With StatePending among the filter's states it does the work of an inbox that
// has no workers any more. To have workers do it, see [Inbox.Requeue]; to see
// the effect, [Common.DryReplay].
func (c *Common) Replay(ctx context.Context, f Filter) (Replayed, error) {
	return c.ReplayFunc(ctx, f, func(Replayed, Event, error) {})
}

// ReplayFunc is Replay with a report: it calls ran after each event, with the sum until
// then, and why the event failed, if it did.
func (c *Common) ReplayFunc(ctx context.Context, f Filter, ran func(sum Replayed, e Event, failure error)) (Replayed, error) {
	return c.withOvertaken(ctx, ran, func(ran func(Replayed, Event, error)) (Replayed, error) {
		sum, err := c.runAll(ctx, f, c.replay, ran)
		if err != nil {
			return sum, err
		}
		return c.goThroughLanes(ctx, sum, ran)
	})
}

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

// withOvertaken calls run, and adds to its sum the events that it did behind later ones.
func (c *Common) withOvertaken(
	ctx context.Context, ran func(Replayed, Event, error), run func(func(Replayed, Event, error)) (Replayed, error),
) (Replayed, error) {
	var done []string
	before := 0
	sum, err := run(func(sum Replayed, e Event, failure error) {
		if sum.Done > before {
			before = sum.Done
			done = append(done, e.row().RowKey())
		}
		ran(sum, e, failure)
	})
	if err != nil || len(done) == 0 {
		return sum, err
	}
	found, err := timed(ctx, func(ctx context.Context) ([]store.Overtaken, error) { return store.FindOvertaken(ctx, c.pool, done) })
	if err != nil {
		return sum, fmt.Errorf("idem: all have run, and whether later events were done before them is not known: %w", explain(err))
	}
	for _, o := range found {
		sum.Overtaken = append(sum.Overtaken, Overtaken{Event: Event(o.Event), By: Event(o.By), More: o.More})
	}
	return sum, nil
}

// goThroughLanes goes on behind the events that a replay has done: see replayHeld.
func (c *Common) goThroughLanes(ctx context.Context, sum Replayed, ran func(Replayed, Event, error)) (Replayed, error) {
	if _, err := c.passParked(ctx); err != nil {
		return sum, err
	}
	return c.replayHeld(ctx, sum, ran)
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

var errEarlier = errors.New("an earlier event of the same entity is not done, or one is being processed: replay or discard that first, or replay this again")
