package idem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Processor receives the events of one source and processes them before it answers: each event once, in one
// transaction with the record that the event is done. A Processor is an [http.Handler]; [Processor.Accept]
// does the same without HTTP.
//
// A parked event holds its entity: later events of its Key, by the provider's time and then by arrival, are
// parked with the error "waits for" and the ID of the parked event, and answered with 200. Package health is
// red then. The later events are processed in order once the parked one is done, by a replay or another
// delivery, or discarded: see [Processor.Run]. To give an event up and let its entity go on, a handler
// returns nil, and writes a row of its own. Where handlers are right in any order, set PassParked.
//
// Only parked events hold others: an event that fails, and will be delivered again, does not hold the next
// one. So order is kept only where the provider sends one event after the other (Asaas: the webhook's send
// type SEQUENTIALLY). An [Inbox] keeps order by itself.
//
// The exported fields, and those of [Common], are settings: change them before
// the first event. Any number of processors, in any number of processes, may
// share a database.
type Processor struct {
	Common

	// ParkAfter is the number of failed deliveries after which an event is parked and acknowledged, so that
	// one bad event cannot make the provider stop its queue: Asaas does after 15 failures. An event that was
	// parked or unhandled before is parked again at its first failure. Default: 10, which on Asaas's schedule
	// takes half an hour.
	ParkAfter int

	flights sync.Map     // the *flight of each event and body
	going   atomic.Int32 // calls of goOn that are not answered yet
}

// NewProcessor returns a processor for the events of source, with its settings
// at their defaults. The tables must exist: see [Migrate].
//
// It panics if the source's name cannot be used: see [Source].
func NewProcessor(pool *pgxpool.Pool, source Source) *Processor {
	return &Processor{Common: newCommon(pool, source, 8*time.Second), ParkAfter: 10}
}

// ServeHTTP receives one delivery: it has the source verify and read the delivery, runs [Processor.Accept],
// and answers. 200 means that the event is stored, and the provider stops sending it.
//
//	200  the event is stored (done now or before, unhandled or parked), or ignored
//	401  not genuine; the body names the reason
//	405  not a POST
//	413  the body is larger than MaxBody
//	503  not stored: it must be delivered again, as its body was empty or not whole, for example; or a dry run, see
//	     [DryRunHeader]
func (p *Processor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, p.accept)
}

// Accept processes one verified event without HTTP, for deliveries that arrive
// through a queue or a router of the application's own. Name the event with
// the provider's Identify:
//
//	outcome, err := processor.Accept(ctx, asaas.Identify(body))
//
// A nil error means that the event is stored, and need not be delivered again. After an error it must be
// delivered again: the work was rolled back, or ([Unknown]) the answer to COMMIT was lost, or came too late
// to count, and Postgres could not be asked.
//
// Canceling ctx does not stop the attempt; Timeout does.
func (p *Processor) Accept(ctx context.Context, e Event) (Outcome, error) {
	return p.accept(ctx, delivery{event: e})
}

// accept is Accept for a delivery.
func (p *Processor) accept(ctx context.Context, d delivery) (Outcome, error) {
	return p.receive(ctx, d, p.Timeout, func(ctx context.Context, e Event) result {
		same := e.row().RowKey() + "\x00" + string(e.Payload) // another body is a conflict; no name has a NUL
		return p.fly(ctx, same, func() result { return p.process(ctx, e) })
	})
}

// flight is an event that is being processed in this process. All deliveries of the event with the same
// body that arrive meanwhile share one attempt and its result, so that a storm of one event takes one connection.
type flight struct {
	done   chan struct{}
	result result // set before done is closed
}

// fly runs lead for the first of concurrent deliveries with a key, and has the
// others wait for its result.
func (p *Processor) fly(ctx context.Context, key string, lead func() result) result {
	f := &flight{done: make(chan struct{}), result: result{outcome: Retrying, err: errors.New("the delivery's goroutine ended")}}
	if first, found := p.flights.LoadOrStore(key, f); found {
		return first.(*flight).wait(ctx)
	}
	defer func() {
		p.flights.Delete(key)
		close(f.done)
	}()
	f.result = lead()
	return f.result
}

// wait waits for the first delivery, and returns its result: for this delivery, an event that the first one
// stored is a duplicate.
func (f *flight) wait(ctx context.Context) result {
	select {
	case <-f.done:
	case <-ctx.Done():
		return result{outcome: Retrying, err: errors.New("another delivery of the same event is still being processed")}
	}
	if f.result.outcome.Acknowledged() {
		return result{outcome: Duplicate}
	}
	return result{outcome: f.result.outcome, err: fmt.Errorf("a concurrent delivery of the same event failed: %w", f.result.err)}
}

// process runs the event's handler, or stores the event if there is no handler.
func (p *Processor) process(ctx context.Context, e Event) result {
	work, err := p.route(e)
	switch {
	case err != nil:
		return p.storeUnprocessed(ctx, e, StateParked, err)
	case work == nil:
		return p.storeUnprocessed(ctx, e, StateUnhandled, nil)
	}
	r := p.deliver(ctx, e, work)
	for again := 1; errors.Is(r.err, errMoved) && again < maxRuns; again++ { // no handler ran
		r = p.deliver(ctx, e, work)
	}
	if r.outcome == Retrying || r.outcome == Unknown {
		r.outcome, r.err = p.fail(ctx, e, r)
	}
	return r
}

// deliver makes an attempt at an event that is new or repeatable. An event that is stored in another state is a
// duplicate.
func (p *Processor) deliver(ctx context.Context, e Event, work Work) (r result) {
	var found store.Found
	a := attempt{event: e, row: e.row(), work: work, found: &found}
	if r.outcome, r.err = p.execute(ctx, a); r.outcome != notMarked {
		return r
	}
	r.conflict = found.Conflict
	p.logFirstConflict(ctx, e, found)
	switch {
	case found.State == "":
		r.outcome, r.err = p.hold(ctx, a.row, store.HoldNew)
	case isRepeatable(found.State):
		promoted := false     // workers poll for the next one
		a.row.Key = found.Key // the lane of the stored event, not of this delivery
		a.stored, a.promoted = &store.Stored{States: repeatable, Wait: true}, &promoted
		r.outcome, r.err = p.execute(ctx, a)
		r.atLast = r.outcome == Done && found.State != store.Unhandled
		if promoted {
			p.goOn()
		}
		if r.outcome == notMarked && isRepeatable(found.State) { // execute has looked again
			r.outcome, r.err = p.hold(ctx, a.row, store.Hold)
		}
	}
	if r.outcome == notMarked {
		r.outcome = Duplicate
	}
	return r
}

// repeatable are the states of events that a delivery processes again. A pending event is left to workers.
var repeatable = []string{store.Retrying, store.Unhandled, store.Parked}

func isRepeatable(state string) bool { return slices.Contains(repeatable, state) }

// hold has an event wait for the earlier one because of which it was not marked. The outcome is the state of
// the earlier event.
func (p *Processor) hold(ctx context.Context, e store.Event, hold func(context.Context, store.DB, store.Event) (store.Held, error)) (Outcome, error) {
	held, err := query(ctx, p.pool, func(ctx context.Context, db store.DB) (store.Held, error) { return hold(ctx, db, e) })
	switch {
	case err != nil:
		return Retrying, fmt.Errorf("holding the event: %w", store.Explain(err))
	case held.State == "":
		return Retrying, errMoved
	case held.State == store.Pending:
		return Pending, nil
	}
	return Parked, errors.New("waits for " + held.By)
}

// errMoved is the error of an event that is neither processed nor held: between two statements the earlier
// event was done, or the event itself was forgotten.
var errMoved = errors.New("the earlier event of the same entity that it had to wait for was done just now")

// errForgotten is the error of a stored event that is not found any more.
var errForgotten = errors.New("the event was being forgotten when it came again")

// storeUnprocessed stores an event that no handler can process now, with its payload.
func (c *Common) storeUnprocessed(ctx context.Context, e Event, state State, cause error) result {
	stored, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (bool, error) {
		return store.StoreUnprocessed(ctx, db, e.row(), string(state), errorText(cause), c.PassParked)
	})
	switch {
	case err != nil:
		return result{outcome: Retrying, err: fmt.Errorf("storing the event: %w", store.Explain(err))}
	case stored:
		return result{outcome: Outcome(state), err: cause}
	}
	found, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (store.Found, error) { return store.LookUp(ctx, db, e.row()) })
	if err != nil {
		return result{outcome: Retrying, err: fmt.Errorf("looking at the stored event: %w", store.Explain(err))}
	}
	if found.State == "" {
		return result{outcome: Retrying, err: errForgotten}
	}
	c.logFirstConflict(ctx, e, found)
	return result{outcome: Duplicate, conflict: found.Conflict}
}

// fail counts a failed delivery if the handler ran: if the database could not be reached, the event is not to
// blame. An event that has failed too often is parked.
func (p *Processor) fail(ctx context.Context, e Event, r result) (Outcome, error) {
	if !pgtx.WorkFailed(r.err) {
		return r.outcome, r.err
	}
	limit := min(p.ParkAfter, math.MaxInt32) // Postgres counts no further
	if handling.IsFinal(r.err) {
		limit = 1
	}
	return p.count(ctx, e, r, limit)
}

// count counts an attempt that failed. An attempt whose COMMIT was not answered has failed if the event is
// not done.
func (c *Common) count(ctx context.Context, e Event, r result, limit int) (Outcome, error) {
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	state, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (string, error) {
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
	// CountFailure has written nothing, and so its commit has not waited for the replica.
	found, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (store.Found, error) { return store.LookUp(ctx, db, e.row()) })
	if err != nil || found.State != store.Done {
		return Unknown, errors.Join(r.err, err)
	}
	return Done, nil
}

// answers reports whether Postgres answers, also if ctx is over.
func (c *Common) answers(ctx context.Context) bool {
	return pgtx.Ask(context.WithoutCancel(ctx), c.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.Ping(ctx) }) == nil
}

const (
	// goOnEvery is the interval at which Run looks for held events that are due.
	goOnEvery = time.Second
	// promoteEvery is the interval at which Run looks for events that wait for nothing, as workers do.
	promoteEvery = time.Minute
)

// Run processes the events that waited for a parked event of their entity, once the parked event is done or
// discarded, in this or another process, until ctx ends. [Serve] calls Run. Without Run, the waiting events
// follow a parked event that is replayed, or delivered again to this process, but not a discarded event, and
// not an event that another process did before it died.
//
// Call Run in a goroutine, in any number of processes. It returns an error immediately if a setting makes no
// sense.
func (p *Processor) Run(ctx context.Context) error {
	err := checkSettings("processor", map[string]bool{"Timeout": p.Timeout > 0, "ParkAfter": p.ParkAfter > 0})
	if err := errors.Join(err, p.checkRetention()); err != nil {
		return err
	}
	var promoted time.Time
	for failed := false; ctx.Err() == nil; sleep(ctx, goOnEvery) {
		err := pgtx.Protect(func() (err error) { // hooks of the pool are the application's
			if time.Since(promoted) >= promoteEvery {
				promoted = time.Now()
				_, err = p.promoteAll(ctx, false)
			}
			return errors.Join(err, p.replayHeld(ctx))
		})
		switch {
		case err == nil:
			p.logEnd(ctx)
		case !failed && ctx.Err() == nil:
			p.logAway(ctx, "webhook processor cannot go on with events that waited, and tries again", Event{}, err)
		}
		failed = err != nil
	}
	return nil
}

// goOn processes the events that waited for an event that is done now, in a goroutine of its own: the
// provider does not wait for them.
func (p *Processor) goOn() {
	if p.going.Add(1) > 1 {
		return // the running goroutine looks once more
	}
	go func() {
		for calls := p.going.Load(); ; calls = p.going.Load() {
			ctx := context.Background() // each attempt has its Timeout
			err := pgtx.Protect(func() error { return p.replayHeld(ctx) })
			if err != nil {
				p.logAway(ctx, "webhook processor cannot go on with events that waited: they wait for Run, or a Replay", Event{}, err)
			}
			if p.going.CompareAndSwap(calls, 0) {
				return
			}
		}
	}()
}

// replayHeld replays the held events that are due, see [replaying.held].
func (c *Common) replayHeld(ctx context.Context) error {
	return (&replaying{common: c}).held(ctx)
}

// passParked takes parked events out of their lanes, if PassParked is set, so that the events behind them go
// on. It returns the number of parked events.
func (c *Common) passParked(ctx context.Context) (passed int64, err error) {
	for more := c.PassParked; more; {
		var lanes []string
		limited, cancel := context.WithTimeout(ctx, c.Timeout)
		err := c.change(limited, func(ctx context.Context, tx pgx.Tx) (err error) {
			if lanes, err = store.Pass(ctx, tx, c.source.Name(), atOnce); err != nil {
				return err
			}
			return store.PromoteHeld(ctx, tx, lanes)
		})
		cancel()
		if err != nil {
			return passed, fmt.Errorf("idem: passing parked events: %w", store.Explain(err))
		}
		passed += int64(len(lanes))
		more = len(lanes) == atOnce
	}
	return passed, nil
}

// promoteAll makes events due that wait for nothing, and those that PassParked lets go on. It returns the
// number of changed events. If another process looks for events that wait for nothing, promoteAll waits for
// it if wait is set, and otherwise leaves them to it.
func (c *Common) promoteAll(ctx context.Context, wait bool) (int64, error) {
	passed, passing := c.passParked(ctx)
	stuck, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.PromoteStuck(ctx, db, c.source.Name(), wait)
	})
	return passed + stuck, errors.Join(passing, err)
}

// endHeld ends the turn of a held event that cannot be processed.
func (c *Common) endHeld(ctx context.Context, e Event, state string, cause error) error {
	return exec(ctx, c.pool, func(ctx context.Context, db store.DB) error {
		return store.EndHeld(ctx, db, e.row(), state, errorText(cause), c.PassParked)
	})
}
