package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	// stop them all: Asaas pauses its queue after 15. Default: 10.
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
	e, err := p.normalize(e)
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), time.Now().Add(p.Timeout))
	defer cancel()
	ctx, s := p.start(ctx, StageDelivery, e, "", start)
	o := Observation{Event: e, Outcome: Retrying, Err: err}
	if err == nil {
		o.Outcome, o.Err = p.flights.do(ctx, e.row().RowKey(), func() (Outcome, error) {
			return p.process(ctx, e, &o.Conflict)
		})
	}
	o.Err = wrap(e, o.Err)
	s.report(ctx, o)
	if o.Outcome.Acknowledged() {
		return o.Outcome, nil
	}
	return o.Outcome, o.Err
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

// deliver runs the handler of an event that is new or, if it was kept, again.
func (p *Processor) deliver(ctx context.Context, e Event, work Work, conflict *bool) (Outcome, error) {
	var found store.Found
	look := func(b *pgx.Batch) { store.Look(b, e.row(), &found) }
	a := attempt{event: e, work: work, mark: p.markNew(e), otherwise: look}
	outcome, err := p.execute(ctx, a)
	if outcome != Duplicate || err != nil {
		return unlessDuplicate(outcome, err)
	}
	p.noteConflict(ctx, e, found, conflict)
	if isKept(found.State) {
		var promoted bool // workers look for it from time to time
		stored := e
		stored.Key = found.Key // its place in the order, whatever this delivery says
		a.mark, a.last = p.markStored(stored, kept...), promote(stored, &promoted)
		if outcome, err = p.execute(ctx, a); outcome != Duplicate || err != nil {
			return unlessDuplicate(outcome, err)
		}
	}
	switch {
	case isKept(found.State):
		return Retrying, errors.New("an earlier event of the same entity is not done: it is waited for")
	case found.State == "":
		return Retrying, errors.New("the event was being forgotten when it came again")
	}
	return Duplicate, nil
}

// unlessDuplicate is the outcome of an attempt that did not get as far as to
// find out whether the event is a duplicate.
func unlessDuplicate(o Outcome, err error) (Outcome, error) {
	if o == Duplicate && err != nil {
		return Retrying, fmt.Errorf("looking at the stored event: %w", explain(err))
	}
	return o, err
}

// kept are the states of events that a delivery processes again. One that is
// pending is its workers'.
var kept = []string{store.Retrying, store.Unhandled, store.Parked}

func isKept(state string) bool {
	return state == store.Retrying || state == store.Unhandled || state == store.Parked
}

// keep stores an event that no handler can process now, with its payload.
func (p *Processor) keep(ctx context.Context, e Event, state State, cause error, conflict *bool) (Outcome, error) {
	stored, err := store.Keep(ctx, p.pool, e.row(), string(state), errorText(cause))
	switch {
	case err != nil:
		return Retrying, fmt.Errorf("storing the event: %w", explain(err))
	case stored:
		return Outcome(state), cause
	}
	var found store.Found
	b := &pgx.Batch{}
	store.Look(b, e.row(), &found)
	if err := p.pool.SendBatch(ctx, b).Close(); err != nil {
		return Retrying, fmt.Errorf("looking at the stored event: %w", explain(err))
	}
	p.noteConflict(ctx, e, found, conflict)
	return Duplicate, nil
}

// noteConflict says whether another body is stored, and logs it the first time.
func (p *Processor) noteConflict(ctx context.Context, e Event, found store.Found, conflict *bool) {
	*conflict = found.Conflict
	if found.First {
		p.logConflict(ctx, e)
	}
}

// fail counts a failed delivery, if the handler ran: when the database is away,
// or goes away, no event is to blame. One that failed too often is parked.
func (p *Processor) fail(ctx context.Context, e Event, cause error) (Outcome, error) {
	if !pgtx.WorkFailed(cause) {
		return Retrying, cause
	}
	limit, last := p.ParkAfter, store.Parked
	switch {
	case isFinal(cause):
		limit = 1
	case p.HandToInbox:
		last = store.Pending
	}
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	state, err := store.CountFailure(ctx, p.pool, e.row(), errorText(cause), limit, last)
	switch {
	case err != nil:
		return Retrying, errors.Join(cause, fmt.Errorf("the failure could not be counted: %w", err))
	case state == store.Done:
		return Duplicate, cause // by another process, or by this handler with a COMMIT of its own
	}
	return Outcome(state), cause
}
