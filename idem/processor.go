package idem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Processor receives the events of one source and processes them before it
// answers: each event once, in one transaction with the record that it was
// done. It is an [http.Handler]; [Processor.Accept] does the same without HTTP.
//
// The exported fields, and those of [Common], are settings: change them before
// the first event. Any number of processors, in any number of processes, may
// share a database.
type Processor struct {
	Common

	// ParkAfter is the number of failed deliveries after which an event is
	// parked and acknowledged, so that one bad event cannot make the provider
	// stop them all: Asaas pauses its queue after 15. That an earlier event of its
	// entity is not done is such a failure, too. One that was parked or unhandled
	// already is parked again at its first failure. Default: 10.
	ParkAfter int

	// HandToInbox has events that failed ParkAfter times wait for the workers of
	// an [Inbox] on the same database, instead of being parked. Have one
	// run, here or in another process. Default: false.
	HandToInbox bool

	flights flights
}

var _ http.Handler = (*Processor)(nil)

// NewProcessor returns a processor for the events of source, with its settings
// at their defaults. The tables must exist: see [Migrate].
//
// It panics if the source's name cannot be used: see [Source].
func NewProcessor(pool *pgxpool.Pool, source Source) *Processor {
	return &Processor{Common: newCommon(pool, source, 8*time.Second), ParkAfter: 10}
}

// Accept processes one verified event without HTTP, for deliveries that arrive
// through a queue or a router of the application's own. Name the event with
// the provider's Identify:
//
//	outcome, err := processor.Accept(ctx, asaas.Identify(body))
//
// A nil error means that the event is stored or was before, and need not come
// again. With an error it must be delivered again: the work was rolled back, or
// ([Unknown]) the answer to COMMIT was lost.
//
// The event is processed even if ctx is canceled meanwhile, until Timeout.
func (p *Processor) Accept(ctx context.Context, e Event) (Outcome, error) {
	return p.accept(ctx, e, time.Now())
}

// accept is Accept of a delivery that came at start.
func (p *Processor) accept(ctx context.Context, e Event, start time.Time) (Outcome, error) {
	return p.receive(ctx, e, start, p.Timeout, func(ctx context.Context, o *Observation) {
		same := o.Event.row().RowKey() + "\x00" + string(o.Event.Payload) // another body is a conflict; no name has a NUL
		o.Outcome, o.Err = p.flights.do(ctx, same, func() (Outcome, error) {
			return p.process(ctx, o.Event, &o.Conflict)
		})
	})
}

// process takes an event to its handler, or keeps it where there is none.
func (p *Processor) process(ctx context.Context, e Event, conflict *bool) (Outcome, error) {
	if p.ignores(e) {
		return Ignored, nil
	}
	work, err := p.route(e)
	switch {
	case err != nil:
		return p.keep(ctx, e, StateParked, err, conflict)
	case work == nil:
		return p.keep(ctx, e, StateUnhandled, nil, conflict)
	}
	outcome, err := p.deliver(ctx, e, work, conflict)
	if outcome == Retrying {
		return p.fail(ctx, e, err)
	}
	return outcome, err
}

// deliver makes an attempt at an event that is new or kept. Duplicate means that it is
// stored, and not a Processor's to process.
func (p *Processor) deliver(ctx context.Context, e Event, work Work, conflict *bool) (Outcome, error) {
	var found store.Found
	look := func(b *pgx.Batch) { store.Look(b, e.row(), &found) }
	a := attempt{event: e, work: work, mark: p.markNew(e), ifNotMarked: look}
	outcome, err := p.execute(ctx, a)
	if outcome != Duplicate {
		return outcome, err
	}
	p.noteConflict(ctx, e, found, conflict)
	if isKept(found.State) {
		stored := e
		stored.Key = found.Key                                                         // its place in the order, whatever this delivery says
		a.mark, a.atCommit = p.markStored(stored, kept...), promote(stored, new(bool)) // workers poll for the next one
		if outcome, err = p.execute(ctx, a); outcome != Duplicate {
			return outcome, err
		}
	}
	switch {
	case isKept(found.State):
		return Retrying, errWaits
	case found.State == "":
		return Retrying, errors.New("the event was being forgotten when it came again")
	}
	return Duplicate, nil
}

// errWaits is why a stored event is not processed that may be. It is a failure of the
// delivery, and counted: the earlier event may wait for days.
var errWaits = errors.New("an earlier event of the same entity is not done: it is waited for")

// kept are the states of events that a delivery processes again. One that is
// pending is its workers'.
var kept = []string{store.Retrying, store.Unhandled, store.Parked}

func isKept(state string) bool { return slices.Contains(kept, state) }

// keep stores an event that no handler can process now, with its payload.
func (p *Processor) keep(ctx context.Context, e Event, state State, cause error, conflict *bool) (Outcome, error) {
	stored, err := p.insertKept(ctx, e, string(state), cause)
	switch {
	case err != nil:
		return Retrying, fmt.Errorf("storing the event: %w", explain(err))
	case stored:
		return Outcome(state), cause
	}
	found, err := ask(ctx, p.pool, func(ctx context.Context, db store.DB) (store.Found, error) { return store.LookUp(ctx, db, e.row()) })
	if err != nil {
		return Retrying, fmt.Errorf("looking at the stored event: %w", explain(err))
	}
	p.noteConflict(ctx, e, found, conflict)
	return Duplicate, nil
}

// insertKept stores an event that no handler can process now. stored is false if it was
// stored before.
func (c *Common) insertKept(ctx context.Context, e Event, state string, cause error) (stored bool, err error) {
	return ask(ctx, c.pool, func(ctx context.Context, db store.DB) (bool, error) {
		return store.Keep(ctx, db, e.row(), state, errorText(cause))
	})
}

// noteConflict says whether another body is stored, and logs it the first time.
func (p *Processor) noteConflict(ctx context.Context, e Event, found store.Found, conflict *bool) {
	*conflict = found.Conflict
	if found.FirstConflict {
		p.logConflict(ctx, e)
	}
}

// fail counts a failed delivery, if the handler ran: when the database is unavailable,
// or becomes so, no event is to blame. One that failed too often is parked.
func (p *Processor) fail(ctx context.Context, e Event, cause error) (Outcome, error) {
	if !pgtx.WorkFailed(cause) && !errors.Is(cause, errWaits) {
		return Retrying, cause
	}
	limit, atLimit := min(p.ParkAfter, math.MaxInt32), store.Parked // Postgres counts no further
	switch {
	case isFinal(cause):
		limit = 1
	case p.HandToInbox:
		atLimit = store.Pending
	}
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	state, err := ask(ctx, p.pool, func(ctx context.Context, db store.DB) (string, error) {
		return store.CountFailure(ctx, db, e.row(), errorText(cause), limit, atLimit)
	})
	switch {
	case err != nil:
		return Retrying, errors.Join(cause, fmt.Errorf("the failure could not be counted: %w", err))
	case state == store.Done:
		return Duplicate, cause // by another process, or by this handler with a COMMIT of its own
	}
	return Outcome(state), cause
}
