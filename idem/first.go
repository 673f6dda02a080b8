package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// workFirst makes the first try of an event, and stores what the try could not do. Concurrent deliveries of the
// event share one try.
func (i *Inbox) workFirst(ctx context.Context, e Event) result {
	same := e.row().RowKey() + "\x00" + string(e.Payload) // another body is a conflict; no name has a NUL
	return i.fly(ctx, same, func() result {
		work, err := i.route(e)
		switch {
		case err != nil:
			return i.storeUnprocessed(ctx, e, StateParked, err)
		case work == nil:
			return i.storeUnprocessed(ctx, e, StateUnhandled, nil)
		}
		v := i.tryUntilMarked(ctx, e, work)
		i.logFirstConflict(ctx, e, v.found)
		switch {
		case v.outcome == Done, v.outcome == Unknown && i.isDone(ctx, e):
			return result{outcome: Done}
		case isStored(v.found.State) && !isRevivable(v.found.State):
			return result{outcome: Duplicate, conflict: v.found.Conflict}
		case v.found.State != "" && !isStored(v.found.State):
			return result{outcome: Retrying, err: errState(v.found.State)}
		case i.hasWorkers(ctx):
			return i.storeTried(ctx, e, v)
		case isRevivable(v.found.State): // it waits for a replay
			return result{outcome: Duplicate, conflict: v.found.Conflict}
		case pgtx.WorkFailed(v.err) && i.isDone(ctx, e): // by the handler, with a COMMIT of its own
			return result{outcome: Duplicate, err: v.err}
		case handling.IsFinal(v.err):
			return i.storeUnprocessed(ctx, e, StateParked, v.err)
		case v.err == nil:
			v.err = errBusy
		}
		return result{outcome: Retrying, err: v.err}
	})
}

// tryUntilMarked makes the first try of an event. One that may not begin within a second is left to workers. Where none
// run, it goes on trying for AnswerWithin.
func (i *Inbox) tryUntilMarked(ctx context.Context, e Event, work Work) verdict {
	if answer, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithDeadline(ctx, answer.Add(-toStoreTime))
		defer cancel()
		ctx = limited
	}
	within := min(i.AnswerWithin, maxAnswerWithin)
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	toStore := int32(1) // a connection
	for tries := 1; ; tries++ {
		v := verdict{outcome: notMarked}
		if ctx.Err() == nil && (i.mayTry(toStore) || i.hasWorkers(waiting) && i.awaitTurn(waiting, toStore)) {
			v = i.try(ctx, e, work, within)
		}
		if v.outcome != notMarked || v.found.State != "" || i.hasWorkers(waiting) || !pause(waiting, tries) {
			return v
		}
		toStore = 0
	}
}

const (
	// toStoreTime is left of the time of an answer after a first try, to roll back, to end a session and to store the
	// event.
	toStoreTime = 3 * time.Second

	maxAnswerWithin = answerTime - toStoreTime - turnTime
)

// errBusy is the error of an event that was not tried, where no workers would process it.
var errBusy = errors.New("an earlier event of the same entity is not done, one is being processed, the event is paused, or no connection is free, " +
	"and no workers are known to run: the event must be delivered again")

// storeTried stores an event after its first try, for workers.
func (i *Inbox) storeTried(ctx context.Context, e Event, v verdict) result {
	r := i.store(ctx, e, v.begun)
	switch {
	case r.outcome == Pending, r.outcome == Duplicate && pgtx.WorkFailed(v.err): // done by the handler, with a COMMIT of its own
		r.err = v.err
	case r.outcome == Retrying && v.err != nil:
		r.err = errors.Join(v.err, r.err)
	}
	return r
}

// isDone reports whether an event is done.
func (i *Inbox) isDone(ctx context.Context, e Event) bool {
	found, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (store.Found, error) { return store.LookUp(ctx, db, e.row()) })
	return err == nil && found.State == store.Done
}

// try makes a first try of an event whose turn it is, within a time. If it may not begin now, no handler runs, and the
// outcome is notMarked.
func (i *Inbox) try(ctx context.Context, e Event, work Work, within time.Duration) verdict {
	defer i.leaveTurn()
	key := e.row().RowKey()
	if i.runsFirst(key) || !processSolo.TryEnter() {
		return verdict{outcome: notMarked}
	}
	defer processSolo.Leave(1)
	watched := func(work Work) Work {
		return func(ctx context.Context, tx pgx.Tx) error {
			began := time.Now()
			i.firsts.Store(key, began)
			defer i.firsts.CompareAndDelete(key, began)
			return work(ctx, tx)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	v := i.execute(ctx, attempt{event: e, row: e.row(), work: watched(work), around: watched})
	if !v.begun.IsZero() {
		i.slow.Add(v.outcome != Done && ctx.Err() != nil)
	}
	return v
}

// runsFirst reports whether the handler of an event's first try is running in this process, where no attempt begins
// beside it. After Timeout it is taken for one that never returns; its transaction has long ended.
func (i *Inbox) runsFirst(key string) bool {
	began, runs := i.firsts.Load(key)
	return runs && time.Since(began.(time.Time)) < i.Timeout
}

// mayTry counts a first try, and reports whether it may begin. First tries leave the workers of this inbox their
// connections, and toStore others to store events, if there are as many.
func (i *Inbox) mayTry(toStore int32) bool {
	pool := i.pool.Stat()
	spare := pool.MaxConns() - toStore
	if pool.AcquiredConns() >= max(1, spare) || i.outage().IsWhole() {
		return false
	}
	for most := max(1, spare-i.working.Load()); ; {
		n := i.tries.Load()
		if n >= most {
			return false
		}
		if i.tries.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

const (
	// turnTime is the time for which a first try waits for its turn: in a burst that takes milliseconds, and storing the
	// event instead would cost three times as much. It is short for handlers that stand still.
	turnTime = time.Second

	// lookAgain is the time after which it looks for a connection that others than first tries have given back.
	lookAgain = 20 * time.Millisecond
)

// awaitTurn is mayTry, and waits.
func (i *Inbox) awaitTurn(ctx context.Context, toStore int32) bool {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	for !i.mayTry(toStore) {
		if i.outage().IsWhole() {
			return false
		}
		select {
		case <-i.turn:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return false
		}
	}
	i.passTurn() // there may be room for more than one
	return true
}

// leaveTurn is called at the end of a first try.
func (i *Inbox) leaveTurn() {
	i.tries.Add(-1)
	i.passTurn()
}

// passTurn has one of those that wait look whether it is its turn.
func (i *Inbox) passTurn() {
	select {
	case i.turn <- struct{}{}:
	default:
	}
}

// hasWorkers reports whether workers process the source's events: here, or elsewhere, by their last sign of life.
func (i *Inbox) hasWorkers(ctx context.Context) bool {
	return i.working.Load() > 0 || i.others.known(ctx, func() (bool, error) {
		living, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) ([]store.Worker, error) {
			return store.LivingWorkers(ctx, db, i.source.Name())
		})
		return len(living) > 0, err
	})
}

// lastWorkers remembers for a minute whether other processes have workers.
type lastWorkers struct {
	turn  chan struct{} // has an element while the others are used
	yes   bool
	until time.Time
}

// workersFor is the time for which lastWorkers remembers.
const workersFor = time.Minute

// known returns the remembered answer, or that of ask. Without an answer it is that there are none: the event is
// delivered again.
func (l *lastWorkers) known(ctx context.Context, ask func() (bool, error)) bool {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return false
	}
	if time.Now().Before(l.until) {
		return l.yes
	}
	yes, err := ask()
	if err != nil {
		return false
	}
	l.yes, l.until = yes, time.Now().Add(workersFor)
	return yes
}

// flight is an event that is being tried in this process. All deliveries of the event with the same
// body that arrive meanwhile share one try and its result, so that a storm of one event takes one connection.
type flight struct {
	done   chan struct{}
	result result // set before done is closed
}

// fly runs lead for the first of concurrent deliveries with a key, and has the
// others wait for its result.
func (i *Inbox) fly(ctx context.Context, key string, lead func() result) result {
	f := &flight{done: make(chan struct{}), result: result{outcome: Retrying, err: errors.New("the delivery's goroutine ended")}}
	if first, found := i.flights.LoadOrStore(key, f); found {
		return first.(*flight).wait(ctx)
	}
	defer func() {
		i.flights.Delete(key)
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
