package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Replay processes events that were stored because no handler existed or because they failed, by the
// provider's time and then by arrival, one after the other. Call it after deploying the missing handler or
// the fix. Each event runs like a delivery, in a transaction of its own with the record that it is done, so
// that it is safe to replay while deliveries arrive and from several processes at once. Two stored events of
// one entity are never processed at the same time. An event waits for an earlier event of its entity that is
// pending or parked. A new event that a Processor receives meanwhile waits while an earlier one is being
// processed.
//
// Events that were parked only because they waited for a replayed event follow it, in order, whether or not f
// chooses them, until one fails. They are counted as well.
//
// A failing event does not stop the others; its error is logged and observed, and the error of its handler is
// stored. An unhandled event that fails is parked. Replay returns an error when ctx ends or Postgres is
// unavailable, together with the counts until then.
//
// An event is processed also if a later event of its entity was done before: it may be money.
// Replayed.Overtaken lists such events, for a person to look at. To find them, Replay reads the rows of all
// events at its end, once, ten million in a second or two; see operator.Operator.ScanOfKey for an index.
//
// With StatePending among the filter's states, Replay does the work of an inbox that has no workers any more.
// To leave the work to workers, see [Inbox.Requeue]; to see the result first, see [Common.DryReplay].
func (c *Common) Replay(ctx context.Context, f Filter) (Replayed, error) {
	return (&replaying{common: c}).all(ctx, f)
}

// Replayed counts the results of replayed events.
type Replayed struct {
	Done      int // done now
	Failed    int // failed again, do not decode, or wait for an earlier event of their entity; still kept
	Unhandled int // no handler, or ignored: left as they are

	// Overtaken lists the events that are done now although a later event of their entity, by the provider's
	// time and then by arrival, was done before.
	Overtaken []Overtaken
}

// Overtaken is an event that was processed although a later event of its entity was done before. No event is
// skipped for that reason: see that the handler's effect is right, for example of a payment that is booked
// after its refund.
type Overtaken struct {
	Event Event // without OccurredAt and Payload
	By    Event // the latest event that was done before it, without OccurredAt and Payload
	More  int   // the number of other later events that were done before it
}

// String returns the two events in words.
func (o Overtaken) String() string {
	others := ""
	if o.More > 0 {
		others = fmt.Sprintf(", as were %d others", o.More)
	}
	return fmt.Sprintf("%s (%s) ran behind %s (%s), which was done before it%s", o.Event.ID, o.Event.Type, o.By.ID, o.By.Type, others)
}

// replaying is one call of Replay or DryReplay, or one pass over the held events.
type replaying struct {
	common *Common
	dry    bool
	ran    func(sum Replayed, e Event, failure error) // called after each event, with its error; may be nil
	sum    Replayed
	done   []string // the row keys of the events that are done
}

// all runs the events that f chooses, and the events that waited for one that is done or passed now.
func (r *replaying) all(ctx context.Context, f Filter) (Replayed, error) {
	keys, err := r.common.find(ctx, f)
	if err != nil {
		return r.sum, fmt.Errorf("idem: listing events: %w", store.Explain(err))
	}
	err = r.keys(ctx, keys)
	if err == nil && !r.dry {
		_, err = r.common.passParked(ctx)
	}
	if err == nil && !r.dry {
		err = r.held(ctx)
	}
	if err == nil {
		err = r.findOvertaken(ctx)
	}
	return r.sum, err
}

// keys runs events by their row keys. It ends with the error of the first event that has an outcome that is
// not counted: the cause would stop all others.
func (r *replaying) keys(ctx context.Context, keys []string) error {
	run := r.common.replay
	if r.dry {
		run = r.common.dryReplay
	}
	for row, err := range r.common.load(ctx, keys) {
		if err != nil {
			return err
		}
		outcome, failure := Retrying, ctx.Err()
		if failure == nil {
			outcome, failure = run(ctx, row)
		}
		switch outcome {
		case Done:
			r.sum.Done++
			r.done = append(r.done, row.RowKey())
		case Parked:
			r.sum.Failed++
		case Unhandled, Ignored:
			r.sum.Unhandled++
		case Duplicate: // another process has done the event meanwhile
		default:
			return fmt.Errorf("idem: replay stopped at %s %s: %w", row.Type, row.ID, failure)
		}
		if r.ran != nil {
			r.ran(r.sum, Event(row.Event), failure)
		}
	}
	return nil
}

// held runs the held events that are due, and then the events that become due, to the end of each lane or
// until one fails.
func (r *replaying) held(ctx context.Context) error {
	c := r.common
	for last := (store.Place{}); ; { // an event that is left as it was is not found again
		var keys []string
		next, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (next store.Place, err error) {
			keys, next, err = store.FindHeld(ctx, db, c.source.Name(), last, atOnce)
			return next, err
		})
		if err != nil {
			return fmt.Errorf("idem: listing events: %w", store.Explain(err))
		}
		if next == last {
			return nil
		}
		last = next
		if err = r.keys(ctx, keys); err != nil {
			return err
		}
	}
}

// findOvertaken adds to the sum the events that ran after later ones.
func (r *replaying) findOvertaken(ctx context.Context) error {
	if len(r.done) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	found, err := store.FindOvertaken(ctx, r.common.pool, r.done)
	if err != nil {
		return fmt.Errorf("idem: all have run, and whether later events were done before them is not known: %w", store.Explain(err))
	}
	for _, o := range found {
		r.sum.Overtaken = append(r.sum.Overtaken, Overtaken{Event: Event(o.Event), By: Event(o.By), More: o.More})
	}
	return nil
}

// replay is an attempt of a stored event, traced and observed.
func (c *Common) replay(ctx context.Context, row store.Row) (Outcome, error) {
	e := Event(row.Event)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	ctx, s := c.startSpan(ctx, StageAttempt, e, row.Trace, time.Now())
	outcome, err := c.replayOne(ctx, e)
	failed := row.State == store.Parked || row.State == store.Retrying || row.Attempts > 0
	s.report(ctx, Observation{Event: e, Outcome: outcome, Err: wrap(e, err), AtLast: outcome == Done && failed})
	return outcome, err
}

// replayOne is an attempt of a stored event. If the event itself fails, the outcome is Parked, and the event
// stays stored. If Postgres or the broker of an outbox is unavailable, the outcome is Retrying, and nothing
// changes.
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
		event: e, row: e.row(), work: work, found: &found,
		stored: &store.Stored{States: append([]string{store.Pending}, repeatable...), Wait: true},
	})
	switch {
	case outcome == Done:
		return Done, nil
	case outcome == notMarked && (isRepeatable(found.State) || found.State == store.Pending):
		return Parked, errEarlier
	case outcome == notMarked:
		return Duplicate, nil
	case !pgtx.WorkFailed(err) && pgtx.TookTooLong(err) && c.answers(ctx):
		return Parked, errEarlier // Postgres answers: the attempt waited for an earlier event
	case !pgtx.WorkFailed(err) && pgtx.Unavailable(err), handling.IsAway(err):
		return Retrying, err // all other events would fail as well, and none is to blame
	case !pgtx.WorkFailed(err):
		return Parked, err
	}
	if outcome, err = c.count(ctx, e, result{outcome: outcome, err: err}, math.MaxInt32); outcome != Done {
		return Parked, err
	}
	return Done, nil
}

var errEarlier = errors.New("an earlier event of the same entity is not done, or one is being processed: replay or discard that first, or replay this again")

// DryRunHeader, in a genuine delivery, asks for [Common.DryRun] instead of the work. It tries the handlers of
// a running application through its network, verification and database. Nothing is stored, so the answer is
// 503 in any case, which no provider takes for an acknowledgement. The body of the answer has the outcome:
// {"received":false,"dry_run":"done"}. An event of a canary needs no handler. The value of the header is the [BodyID]
// of the body that was sent: if another one arrives that names no such event, the answer's reason says that. Any other
// value does as well.
const DryRunHeader = "Idem-Dry-Run"

// DryRun runs the handler of an event in a transaction that is always rolled back, and returns the outcome
// that the first delivery of the event would have if no earlier event of its entity is parked. Nothing is
// stored or changed, also if the event is stored. An effect of the handler outside of its transaction is
// real, unless the handler asks [IsDryRun]. Functions for after the commit do not run. A delivery of the
// event waits for the dry run only if it needs rows that the handler has locked.
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
	return c.execute(ctx, attempt{event: e, row: dryRow(e), work: work, dry: true})
}

// dryRow returns the row of an event under an ID and an entity that no event has: a delivery of the event
// would wait for a row under the event's own ID until the dry run is rolled back.
func dryRow(e Event) store.Event {
	e.ID, e.Key = "dry run "+rand.Text(), ""
	return e.row()
}

// DryReplay returns the result that [Common.Replay] would have, by a separate [Common.DryRun] of each event:
// an event that needs rows of another fails.
func (c *Common) DryReplay(ctx context.Context, f Filter) (Replayed, error) {
	return (&replaying{common: c, dry: true}).all(ctx, f)
}

// dryReplay is a dry run of a stored event. If the event itself fails, the outcome is Parked, as in a replay.
func (c *Common) dryReplay(ctx context.Context, row store.Row) (Outcome, error) {
	outcome, err := c.DryRun(ctx, Event(row.Event))
	switch {
	case ctx.Err() != nil:
		return Retrying, ctx.Err()
	case outcome == Retrying, outcome == Unknown:
		outcome = Parked
	}
	return outcome, errors.Unwrap(err) // without the event's name, as a replay's error is
}

// dryDelivery handles a delivery with [DryRunHeader]: a dry run of the event's handler, or of no handler if
// the event is a canary's.
func (c *Common) dryDelivery(ctx context.Context, e Event) (Outcome, error) {
	if e.Type == store.CanaryType {
		return c.dry(ctx, e, c.tryCanary)
	}
	return c.DryRun(ctx, e)
}

// tryCanary marks a canary's event, does nothing, and rolls back.
func (c *Common) tryCanary(ctx context.Context, e Event) (Outcome, error) {
	nothing := func(context.Context, pgx.Tx) error { return nil }
	return c.runOnce(ctx, attempt{event: e, row: dryRow(e), work: nothing, dry: true})
}
