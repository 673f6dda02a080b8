package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// DryRunHeader, in a genuine delivery, asks for [Inbox.DryRun] instead of the work. It tries the handlers of
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
func (i *Inbox) DryRun(ctx context.Context, e Event) (Outcome, error) {
	return i.dry(ctx, e, i.dryRun)
}

// dry calls run, a dry run of a handler or of a canary, within Timeout.
func (i *Inbox) dry(ctx context.Context, e Event, run func(context.Context, Event) (Outcome, error)) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, i.Timeout)
	defer cancel()
	e, err := i.normalize(e)
	outcome := Retrying
	if err == nil {
		outcome, err = run(ctx, e)
	}
	if err != nil {
		err = fmt.Errorf("idem: dry run of %s %s: %w", e.Type, e.ID, err)
	}
	return outcome, err
}

func (i *Inbox) dryRun(ctx context.Context, e Event) (Outcome, error) {
	if i.ignores(e) {
		return Ignored, nil
	}
	work, err := i.route(e)
	switch {
	case err != nil:
		return Parked, err
	case work == nil:
		return Unhandled, nil
	}
	v := i.execute(ctx, attempt{event: e, row: dryRow(e), work: work, dry: true})
	return v.outcome, v.err
}

// dryRow returns the row of an event under an ID and an entity that no event has: a delivery of the event
// would wait for a row under the event's own ID until the dry run is rolled back.
func dryRow(e Event) store.Event {
	e.ID, e.Key = "dry run "+rand.Text(), ""
	return e.row()
}

// DryReplay returns the result that [Inbox.Replay] would have, by a separate [Inbox.DryRun] of each event:
// an event that needs rows of another fails.
func (i *Inbox) DryReplay(ctx context.Context, f Filter) (Replayed, error) {
	return i.dryReplay(ctx, f, nil)
}

// dryReplay is DryReplay with a report, which may be nil.
func (i *Inbox) dryReplay(ctx context.Context, f Filter, report replayReport) (sum Replayed, err error) {
	keys, err := i.find(ctx, f)
	if err != nil {
		return sum, fmt.Errorf("idem: listing events: %w", store.Explain(err))
	}
	var done []string
	for row, err := range i.load(ctx, keys) {
		if err != nil {
			return sum, err
		}
		outcome, failure := i.DryRun(ctx, Event(row.Event))
		switch {
		case ctx.Err() != nil:
			return sum, fmt.Errorf("idem: dry run of a replay stopped at %s %s: %w", row.Type, row.ID, ctx.Err())
		case outcome == Retrying, outcome == Unknown: // the event itself fails
			outcome = Parked
		}
		sum.add(outcome)
		if outcome == Done {
			done = append(done, row.RowKey())
		}
		if report != nil {
			report(sum, Event(row.Event), errors.Unwrap(failure)) // without the event's name, as a replay's error is
		}
	}
	sum.Overtaken, err = i.findOvertaken(ctx, done)
	return sum, err
}

// dryDelivery handles a delivery with [DryRunHeader]: a dry run of the event's handler, or of no handler if
// the event is a canary's.
func (i *Inbox) dryDelivery(ctx context.Context, e Event) (Outcome, error) {
	if e.Type == store.CanaryType {
		return i.dry(ctx, e, i.tryCanary)
	}
	return i.DryRun(ctx, e)
}

// tryCanary marks a canary's event, does nothing, and rolls back.
func (i *Inbox) tryCanary(ctx context.Context, e Event) (Outcome, error) {
	nothing := func(context.Context, pgx.Tx) error { return nil }
	v := i.runOnce(ctx, attempt{event: e, row: dryRow(e), work: nothing, dry: true})
	return v.outcome, v.err
}
