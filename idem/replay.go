package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Replay processes events that were stored because no handler existed or because they failed, by the
// provider's time and then by arrival, one after the other. Call it after deploying the missing handler or
// the fix. Each event is claimed as its turn comes, and runs in a transaction of its own with the record that it is
// done, so that it is safe to replay while deliveries arrive and from several processes at once. Two stored events of
// one entity are never processed at the same time. An event is not processed before an earlier event of its entity
// is done.
//
// Events that wait for a replayed event go on once it is done: workers process them.
//
// A failing event does not stop the others; its error is logged and observed, the error of its handler is
// stored, and the event is parked. A process that dies leaves the events as they were. Replay returns an error when ctx
// ends or Postgres is unavailable, together with the counts until then.
//
// An event is processed also if a later event of its entity was done before: it may be money.
// Replayed.Overtaken lists such events, for a person to look at. To find them, Replay reads the rows of all
// events at its end, once, ten million in a second or two; see operator.Operator.ScanOfKey for an index.
//
// With StatePending among the filter's states, Replay does the work of workers. To leave the work to them, see
// [Inbox.Requeue]; to see the result first, see [Inbox.DryReplay].
func (i *Inbox) Replay(ctx context.Context, f Filter) (Replayed, error) {
	return i.replay(ctx, f, nil)
}

// Replayed counts the results of replayed events.
type Replayed struct {
	Done      int // done now
	Failed    int // failed again, do not decode, or wait for an earlier event of their entity; still kept
	Unhandled int // no handler, or ignored: left as they are
	Left      int // left to workers, which process it, or an earlier event of its entity

	// Overtaken lists the events that are done now although a later event of their entity, by the provider's
	// time and then by arrival, was done before.
	Overtaken []Overtaken
}

// add counts the result of an event. It reports false for an outcome whose cause would stop all other events.
func (sum *Replayed) add(outcome Outcome) bool {
	switch outcome {
	case Done:
		sum.Done++
	case Parked:
		sum.Failed++
	case Unhandled, Ignored:
		sum.Unhandled++
	case Pending:
		sum.Left++
	case Duplicate: // another process has done the event
	default:
		return false
	}
	return true
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

// replayReport is called after each event with the sum so far, and with the event's error if it failed.
type replayReport = func(sum Replayed, e Event, failure error)

// replay replays the events that f chooses, by a runner of its own. report may be nil.
func (i *Inbox) replay(ctx context.Context, f Filter, report replayReport) (sum Replayed, err error) {
	keys, err := i.find(ctx, f)
	if err != nil {
		return sum, fmt.Errorf("idem: listing events: %w", store.Explain(err))
	}
	if len(keys) == 0 {
		return sum, nil
	}
	r := i.newRunner(ctx, 0)
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.begin(ctx); err != nil {
		return sum, fmt.Errorf("idem: replay cannot give a sign of life: %w", store.Explain(err))
	}
	var done []string
	for _, key := range keys {
		e, outcome, failure := Event(store.EventOf(key)), Retrying, ctx.Err()
		if failure == nil {
			e, outcome, failure = r.replay(ctx, key)
		}
		if !sum.add(outcome) {
			return sum, fmt.Errorf("idem: replay stopped at %s %s: %w", e.Type, e.ID, failure)
		}
		if outcome == Done {
			done = append(done, key)
		}
		if report != nil {
			report(sum, e, failure)
		}
	}
	sum.Overtaken, err = i.findOvertaken(ctx, done)
	return sum, err
}

// findOvertaken finds the events, among those that are done now, that ran after later ones.
func (i *Inbox) findOvertaken(ctx context.Context, done []string) (overtaken []Overtaken, err error) {
	if len(done) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	found, err := store.FindOvertaken(ctx, i.pool, done)
	if err != nil {
		return nil, fmt.Errorf("idem: all have run, and whether later events were done before them is not known: %w", store.Explain(err))
	}
	for _, o := range found {
		overtaken = append(overtaken, Overtaken{Event: Event(o.Event), By: Event(o.By), More: o.More})
	}
	return overtaken, nil
}

// replay claims one event, makes an attempt, traced and observed, and ends the claim. The outcome is Pending if a
// worker is processing the event, Duplicate if it is done already, and Retrying if all other events would fail as
// well.
func (r *runner) replay(ctx context.Context, key string) (Event, Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.inbox.Timeout)
	defer cancel()
	c, outcome, err := r.claimOne(ctx, key)
	e := Event(c.Event)
	if outcome != "" || err != nil {
		return e, outcome, err
	}
	r.running.Store(key, c.Number)
	defer r.running.CompareAndDelete(key, c.Number)
	ctx, s := r.inbox.startSpan(ctx, StageAttempt, e, c.Trace, time.Now())
	err = pgtx.Protect(func() (err error) { // hooks of the pool are the application's
		outcome, err = r.processOne(ctx, c)
		return err
	})
	if outcome == "" {
		outcome = Retrying
	}
	observed := outcome
	if outcome == Pending { // no attempt was made
		observed = ""
	}
	failed := c.State == store.Parked || c.SinceFailure != nil || c.Crashes > 0
	s.report(ctx, Observation{Event: e, Outcome: observed, Err: wrap(e, err), AtLast: outcome == Done && failed})
	return e, outcome, err
}

// claimOne claims an event. If the event cannot be claimed, claimOne returns the outcome: Duplicate if it is done or
// discarded, and Pending if it is being processed.
func (r *runner) claimOne(ctx context.Context, key string) (c store.Claim, outcome Outcome, err error) {
	c.Event = store.EventOf(key)
	for tries := 1; ; tries++ {
		var claimed, open bool
		err = exec(ctx, r.inbox.pool, func(ctx context.Context, db store.DB) error {
			if claim, ok, err := store.ClaimEvent(ctx, db, key, r.signs.Own.ID); err != nil || ok {
				c, claimed = claim, ok
				return err
			}
			open, claimed, err = store.IsOpen(ctx, db, key)
			return err
		})
		switch {
		case err != nil:
			return c, Retrying, fmt.Errorf("claiming the event: %w", store.Explain(err))
		case c.Number > 0:
			return c, "", nil
		case !open:
			return c, Duplicate, nil
		case claimed || tries == claimTries || !pause(ctx, tries):
			return c, Pending, nil
		}
	}
}

// claimTries is the number of tries to claim an event whose row is locked: a delivery of the event locks it for a
// moment.
const claimTries = 5

// processOne runs the handler of an event that is claimed for a replay. If the event itself fails, the outcome is
// Parked. If Postgres or the broker of an outbox is unavailable, the outcome is Retrying, and the event is as it was.
func (r *runner) processOne(ctx context.Context, c store.Claim) (Outcome, error) {
	i, e := r.inbox, Event(c.Event)
	work, err := i.route(e)
	switch {
	case err != nil:
		return r.park(ctx, c, err)
	case work == nil || i.ignores(e):
		return r.release(ctx, c, Unhandled, nil)
	}
	if i.runsFirst(c.RowKey()) {
		return r.release(ctx, c, Pending, nil)
	}
	v := r.attempt(ctx, c, work)
	switch {
	case v.outcome == Done:
		return Done, nil
	case v.outcome == notMarked && c.State == store.Pending && i.hasWorkers(ctx):
		return r.release(ctx, c, Pending, nil)
	case v.outcome == notMarked:
		return r.release(ctx, c, Parked, errEarlier)
	case pgtx.WorkFailed(v.err) && !handling.IsAway(v.err):
		return r.park(ctx, c, v.err)
	case !pgtx.WorkFailed(v.err) && pgtx.TookTooLong(v.err) && i.answers(ctx):
		return r.release(ctx, c, Parked, errEarlier) // Postgres answers: the attempt waited for an earlier event
	case pgtx.Unavailable(v.err), handling.IsAway(v.err):
		return r.release(ctx, c, Retrying, v.err) // all other events would fail as well, and none is to blame
	}
	return r.release(ctx, c, Parked, v.err)
}

var errEarlier = errors.New("an earlier event of the same entity is not done, or one is being processed: replay or discard that first, or replay this again")

// park ends a claim after an attempt that failed.
func (r *runner) park(ctx context.Context, c store.Claim, cause error) (Outcome, error) {
	end := store.End{State: store.Parked, Attempts: 1, LeavesLane: r.inbox.PassParked, Returned: pgtx.WorkFailed(cause)}
	return r.endClaim(ctx, c, end, cause)
}

// release ends a claim without a result: the event is as it was. It returns outcome, or Duplicate if another process
// has done the event.
func (r *runner) release(ctx context.Context, c store.Claim, outcome Outcome, cause error) (Outcome, error) {
	end := store.End{State: c.State, AsItWas: true}
	ended, err := insist(ctx, r, func(ctx context.Context, db store.DB) (bool, error) { return store.EndClaim(ctx, db, c, end) })
	switch {
	case err != nil:
		return Retrying, errors.Join(cause, err)
	case !ended:
		return Duplicate, nil
	}
	return outcome, cause
}

// answers reports whether Postgres answers, also if ctx is over.
func (i *Inbox) answers(ctx context.Context) bool {
	return pgtx.Ask(context.WithoutCancel(ctx), i.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.Ping(ctx) }) == nil
}

// rerun runs the handler of a done event once more, in a transaction of its own. If that fails, nothing has changed.
func (i *Inbox) rerun(ctx context.Context, e Event) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, i.Timeout)
	defer cancel()
	work, err := i.route(e)
	switch {
	case err != nil:
		return Retrying, err
	case work == nil:
		return Unhandled, ErrUnhandled
	}
	ctx, s := i.startSpan(ctx, StageAttempt, e, "", time.Now())
	v := i.execute(ctx, attempt{event: e, row: e.row(), work: work, again: true})
	if v.outcome == notMarked {
		v.outcome, v.err = Retrying, errors.New("it is not done any more, or an event of its entity is being processed: do it again in a moment")
	}
	s.report(ctx, Observation{Event: e, Outcome: v.outcome, Err: wrap(e, v.err)})
	return v.outcome, v.err
}
