package idem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/claims"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Run processes stored events until ctx ends. Call it in a goroutine, any number of times, in any number of
// processes: each event is processed once, and the events of one Key one after the other, by the provider's
// time and then by arrival. Keys do not wait for each other.
//
// Each call of Run has a row in idem_workers, and writes a sign of life every two seconds, on a connection
// beside the pool. If its process dies, other processes go on with its claimed events within 12 seconds, with
// any Timeout.
//
// When ctx ends no further event is claimed, running handlers have StopTimeout to finish, and Run returns
// nil. It returns an error if handlers did not return in time, and immediately if a setting makes no sense.
// If Postgres is unavailable, Run logs an error, and continues once Postgres is back.
func (i *Inbox) Run(ctx context.Context) error {
	if err := i.check(); err != nil {
		return err
	}
	r := i.newRunner(ctx, i.workers())
	if !i.PollOnly {
		r.channel = channel
	}
	var beside sync.WaitGroup
	beside.Go(func() { r.lookAround(ctx) })
	r.loop(ctx)
	beside.Wait()
	return r.stop()
}

// Drain processes all stored events that are due, and returns when no event is due: for tests, and where no
// process can run all the time. Drain leaves events that wait for their next attempt, and the events behind
// them. It also leaves an event with an attempt that could not be begun twice, and returns an error that
// names it. Drain returns an error if Postgres cannot be reached, if the broker of an outbox is unavailable,
// or if ctx ends first.
func (i *Inbox) Drain(ctx context.Context) error {
	if err := i.check(); err != nil {
		return err
	}
	r := i.newRunner(ctx, i.workers())
	r.draining = true
	err := errors.Join(r.drain(ctx), r.stop())
	return errors.Join(append(slices.Collect(maps.Values(r.notBegun)), err)...)
}

// workers returns the number of workers of a runner.
func (i *Inbox) workers() int {
	if i.WorkFirst && i.Workers == i.defaultWorkers {
		return max(1, min(i.Workers, int(i.pool.Config().MaxConns)/2))
	}
	return i.Workers
}

// check finds settings that make no sense.
func (i *Inbox) check() error {
	err := checkSettings("inbox", map[string]bool{
		"Workers": i.Workers > 0, "Timeout": i.Timeout > 0, "AnswerWithin": i.AnswerWithin > 0, "MaxAttempts": i.MaxAttempts > 0,
		"Poll": i.Poll > 0, "Backoff": i.Backoff != nil,
	})
	return errors.Join(err, i.checkRetention())
}

// loop has idle workers process events until ctx ends.
func (r *runner) loop(ctx context.Context) {
	for failed := 0; ctx.Err() == nil; {
		found, err := r.claimAndWork(ctx)
		switch {
		case err != nil:
			if failed++; failed == 1 {
				r.inbox.logAway(ctx, "webhook workers cannot reach the events, and look for them every half second", Event{}, err)
			}
			pause(ctx, failed)
			continue
		case found.MayBeMore(): // another Run of this inbox may look
			r.inbox.wakeOwn()
		default:
			r.rest(ctx, found.Postponed > 0)
		}
		failed = 0
		r.inbox.logEnd(ctx)
	}
}

// drain has workers process events until nothing is due.
func (r *runner) drain(ctx context.Context) error {
	for ctx.Err() == nil {
		r.position = claims.Position{}
		found, err := r.claimAndWork(ctx)
		if err != nil {
			return fmt.Errorf("idem: claiming events: %w", store.Explain(err))
		}
		if found.Postponed > 0 {
			r.postponed.Store(true)
		}
		if r.inbox.outage().IsWhole() {
			r.workers.Wait()
			if err := r.brokerAway(); err != nil {
				return err
			}
		}
		if found.MayBeMore() {
			continue
		}
		r.workers.Wait()
		switch {
		case found.Seen > 0 || found.Search.Limit < r.size: // workers that have ended since may have promoted more
		case r.postponed.Swap(false) || !found.Search.WithCrashed:
			sleep(ctx, store.PostponeTime)
		default:
			if stuck, err := r.inbox.promoteAll(ctx, true); err != nil || stuck == 0 {
				return errors.Join(err, r.brokerAway())
			}
		}
	}
	return ctx.Err()
}

// brokerAway returns an error if the last messages of an outbox have failed, and none has gone through since.
func (r *runner) brokerAway() error {
	_, err := r.inbox.outage().Begun()
	if err == nil {
		return nil
	}
	return fmt.Errorf("idem: the broker takes no messages, and they wait: drain again later: %w", err)
}

// claimAndWork waits for idle workers, claims events, and has the workers process them.
func (r *runner) claimAndWork(ctx context.Context) (store.Claims, error) {
	n, outage := r.awaitWorkers(ctx)
	claim := r.claim
	if outage {
		n, claim = r.returnWorkers(n, 1), r.claimProbe
	} else {
		r.holdMany(ctx)
	}
	r.others = r.others && outage
	if n == 0 {
		return store.Claims{}, nil
	}
	found, err := claim(ctx, n) // if the answer to COMMIT was lost, found still has the claims: MarkStored rejects the uncommitted ones
	r.returnWorkers(n, len(found.Claims))
	for _, c := range found.Claims {
		r.running.Store(c.RowKey(), c.Number)
		r.workers.Go(func() { r.work(c) })
	}
	return found, err
}

const (
	// holdEvery is the least time between two calls of holdMany that have an effect.
	holdEvery = 200 * time.Millisecond
	// holdAtOnce is the largest number of statements of a call: others are to be claimed.
	holdAtOnce = 10
)

// holdMany puts off due events that are paused, and those of types that an outbox's broker refuses: one by one they
// would take as much of the workers' time as other events. After an error, it does so when the next one is put off.
func (r *runner) holdMany(ctx context.Context) {
	if time.Since(r.heldAt) < holdEvery {
		return
	}
	refused, paused := r.holds.Swap(false), r.pauses
	if !refused && !paused {
		return
	}
	if refused {
		r.putOff(ctx, r.putOffRefused)
	}
	if paused {
		r.pauses = false
		r.putOff(ctx, func(ctx context.Context, db store.DB) (int, error) {
			return store.PutOffPaused(ctx, db, r.inbox.source.Name())
		})
	}
	r.heldAt = time.Now()
}

// putOff executes a statement that puts off events, as long as most of those that it looks at are to be put off.
func (r *runner) putOff(ctx context.Context, statement func(context.Context, store.DB) (int, error)) {
	for range holdAtOnce {
		n, err := query(ctx, r.inbox.pool, statement)
		if err != nil || n < store.MaxPutOff/2 {
			return
		}
	}
}

// putOffRefused puts off events of types that the broker refuses.
func (r *runner) putOffRefused(ctx context.Context, db store.DB) (n int, err error) {
	broker := r.inbox.outage()
	h := broker.HoldMany()
	if len(h.Types) == 0 {
		return 0, nil
	}
	n, err = store.PutOff(ctx, db, r.inbox.source.Name(), h)
	broker.Held(n)
	return n, err
}

// awaitWorkers waits for an idle worker, or for all of them during an outage, in which one worker tries one
// event. It returns the number of all idle workers, which the caller now holds; 0 if ctx ends.
func (r *runner) awaitWorkers(ctx context.Context) (n int, outage bool) {
	for {
		select {
		case <-r.idle:
			n++
			continue
		default:
		}
		outage = r.inbox.outage().IsWhole()
		if n == r.size || n > 0 && !outage {
			return n, outage
		}
		select {
		case <-r.idle:
			n++
		case <-ctx.Done():
			return r.returnWorkers(n, 0), false
		}
	}
}

// returnWorkers makes n - used workers idle again, and returns used.
func (r *runner) returnWorkers(n, used int) int {
	for range n - used {
		r.idle <- struct{}{}
	}
	return used
}

// claimProbe claims the one event to try in an outage: in turns an event of a type without failures, and the event that
// has been due the longest. If all types fail, it claims the latter every Poll.
func (r *runner) claimProbe(ctx context.Context, n int) (found store.Claims, err error) {
	for wait := r.inbox.Poll / 10; sleep(ctx, wait); wait = r.inbox.Poll * 9 / 10 {
		r.position = claims.Position{}
		begun := time.Now()
		r.others = !r.others && begun.After(r.othersAt)
		found, err = r.claim(ctx, n)
		if err != nil || !r.others || len(found.Claims) > 0 {
			break
		}
		r.othersAt = time.Now().Add(othersShare * time.Since(begun)) // it has read all that is due
	}
	return found, err
}

// othersShare is the pause after a search that has found no event of another type, in multiples of the search's time.
const othersShare = 20

// rest waits until an event may be due.
func (r *runner) rest(ctx context.Context, soon bool) {
	d := r.inbox.Poll
	if soon {
		d = min(d, store.PostponeTime)
	}
	select {
	case <-r.inbox.wake:
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// claim claims events for n workers, and counts the claimed events as running.
func (r *runner) claim(ctx context.Context, n int) (store.Claims, error) {
	if err := r.begin(ctx); err != nil {
		return store.Claims{}, err
	}
	if !processSolo.Enter(ctx, n) {
		return store.Claims{}, ctx.Err()
	}
	if r.searchAll.Swap(false) {
		r.position = claims.Position{}
	}
	alone := r.hasLived() && processSolo.Reserve()
	search := store.Search{
		Source: r.inbox.source.Name(), After: r.position.After(), Limit: n,
		Worker: r.signs.Own.ID, Running: r.runningKeys(),
		Crashed: crashesSolo, WithCrashed: alone, Crowd: r.waiting >= crowd,
	}
	if r.others {
		for _, failing := range r.inbox.outage().Types() {
			search.Without = append(search.Without, failing.Name)
		}
	}
	// The claim does not end with ctx: an event that is claimed at that moment would pass for a crash.
	found, err := query(context.WithoutCancel(ctx), r.inbox.pool, func(ctx context.Context, db store.DB) (store.Claims, error) {
		return store.ClaimEvents(ctx, db, search)
	})
	r.position.Seen(found)
	if r.waiting += found.Seen - found.Paused; len(found.Claims) > 0 {
		r.waiting = 0
	}
	r.pauses = r.pauses || found.Paused > 0
	if err != nil {
		r.searchAll.Store(true) // the answer with the claims may be lost
	}
	if alone && !slices.ContainsFunc(found.Claims, runsSolo) {
		processSolo.Unreserve()
	}
	processSolo.Leave(n - len(found.Claims))
	return found, err
}

// crowd is the number of events that wait for others, with no other event among them, after which searches take many
// out at once.
const crowd = 50

// hasLived reports whether the runner has worked for a while. Until then it claims no event that was being processed
// when two processes died: something else may kill them, again and again, and the event would be parked for it. Drain
// would have to wait.
func (r *runner) hasLived() bool { return r.draining || r.signs.Running(time.Now()) >= claims.Lived }

// endDeadEvery is the interval at which each process looks for the sessions of dead workers.
const endDeadEvery = 10 * time.Second

// lookAround ends the sessions that dead workers have left, and each minute makes events due that wait for nothing,
// until ctx ends.
func (r *runner) lookAround(ctx context.Context) {
	for promoted := time.Now(); sleep(ctx, endDeadEvery); {
		err := r.endDeadSessions(ctx)
		if time.Since(promoted) >= promoteEvery {
			promoted = time.Now()
			_, promoting := r.inbox.promoteAll(ctx, false)
			err = errors.Join(err, promoting)
		}
		if err != nil && ctx.Err() == nil {
			r.inbox.logAway(ctx, "webhook workers cannot look for what dead ones have left, and for events that wait for nothing", Event{}, err)
		}
	}
}

// promoteEvery is the interval at which workers look for events that wait for nothing.
const promoteEvery = time.Minute

// promoteAll makes events due that are held back behind nothing, those that PassParked lets go on, and those of pauses
// that were ended. It returns the number of changed events. If another process looks for events that are held back
// behind nothing, promoteAll waits for it if wait is set, and otherwise leaves them to it.
func (i *Inbox) promoteAll(ctx context.Context, wait bool) (int64, error) {
	passed, passing := i.passParked(ctx)
	resumed, resuming := query(ctx, i.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.WakePaused(ctx, db, i.source.Name())
	})
	stuck, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.PromoteStuck(ctx, db, i.source.Name(), wait)
	})
	return passed + resumed + stuck, errors.Join(passing, resuming, err)
}

// passParked takes parked events out of their lanes, if PassParked is set, so that the events behind them go
// on. It returns the number of parked events.
func (i *Inbox) passParked(ctx context.Context) (passed int64, err error) {
	for more := i.PassParked; more; {
		var lanes []string
		limited, cancel := context.WithTimeout(ctx, i.Timeout)
		err := i.change(limited, func(ctx context.Context, tx pgx.Tx) (err error) {
			if lanes, err = store.Pass(ctx, tx, i.source.Name(), atOnce); err != nil {
				return err
			}
			return store.PromoteWaiting(ctx, tx, lanes)
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

// stop waits for the running handlers, and cancels them after StopTimeout.
func (r *runner) stop() error {
	late := time.AfterFunc(r.inbox.StopTimeout, func() { r.cancel(errStopped) })
	r.workers.Wait()
	late.Stop()
	r.cancel(nil)
	r.end()
	if n := r.timedOut.Load(); n > 0 {
		return fmt.Errorf("idem: %d handlers did not return when they were stopped: they must end with their context", n)
	}
	return nil
}
