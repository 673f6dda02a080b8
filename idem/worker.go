package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/claims"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Run processes stored events until ctx ends. Call it in a goroutine, any number
// of times, in any number of processes: each event is processed once, and those
// of one Key one after the other, by the provider's time and then by arrival.
// Keys do not wait for each other.
//
// Each call of Run has a row in idem_workers, and writes every two seconds that it is
// alive, on a connection beside the pool. When its process dies, others go on with the events that it
// had claimed within 12 seconds, with any Timeout.
//
// When ctx ends no further event is claimed, running handlers have StopTimeout to
// finish, and Run returns nil. It returns an error if handlers did not return in
// time, and immediately if a setting makes no sense. While Postgres is unavailable
// Run logs that, and continues when it is back.
func (i *Inbox) Run(ctx context.Context) error {
	if err := i.check(); err != nil {
		return err
	}
	r := i.newRunner(ctx)
	if !i.PollOnly {
		r.channel = channel
	}
	var beside sync.WaitGroup
	beside.Go(func() { r.lookAround(ctx) })
	r.loop(ctx)
	beside.Wait()
	return r.stop()
}

// Drain processes all events that are stored and due, and returns when nothing is: for
// tests, and where no process can run all the time. Events that wait for their next attempt, or behind one that does, are
// left, and so is what could not be begun twice, with an error that names it. It returns an error, too, if Postgres cannot be reached, if the broker of an outbox
// is unavailable, or if ctx ends before.
func (i *Inbox) Drain(ctx context.Context) error {
	if err := i.check(); err != nil {
		return err
	}
	r := i.newRunner(ctx)
	r.draining = true
	err := r.drain(ctx)
	return errors.Join(append([]error{err, r.stop()}, r.left...)...)
}

// check finds settings that make no sense.
func (i *Inbox) check() error {
	err := checkSettings("inbox", map[string]bool{
		"Workers": i.Workers > 0, "Timeout": i.Timeout > 0, "MaxAttempts": i.MaxAttempts > 0, "MaxCrashes": i.MaxCrashes > 0,
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
				r.inbox.logError(ctx, "webhook workers cannot reach the events, and look for them every half second", Event{}, err)
			}
			pause(ctx, failed)
			continue
		case found.MayBeMore(): // for another Run of this inbox, too
			r.inbox.wakeOwn()
		default:
			r.rest(ctx, found.Postponed > 0)
		}
		failed = 0
	}
}

// drain has workers process events until nothing is due.
func (r *runner) drain(ctx context.Context) error {
	for ctx.Err() == nil {
		r.position = claims.Position{}
		found, err := r.claimAndWork(ctx)
		if err != nil {
			return fmt.Errorf("idem: claiming events: %w", explain(err))
		}
		if found.Postponed > 0 {
			r.postponed.Store(true)
		}
		if r.inbox.hasOutage() {
			r.workers.Wait()
			if _, err := r.inbox.outage(); err != nil {
				return fmt.Errorf("idem: the broker takes no messages, and they wait: drain again later: %w", err)
			}
		}
		if found.MayBeMore() {
			continue
		}
		r.workers.Wait()
		switch {
		case found.Seen > 0 || found.Search.Limit < r.inbox.Workers: // workers that ended since may have promoted more
		case r.postponed.Swap(false) || !found.Search.WithCrashed:
			sleep(ctx, store.PostponeTime)
		default:
			if stuck, err := r.promoteStuck(ctx, true); err != nil || stuck == 0 {
				return err
			}
		}
	}
	return ctx.Err()
}

// claimAndWork waits for idle workers, claims events for them, and has them work.
func (r *runner) claimAndWork(ctx context.Context) (store.Claims, error) {
	n, claim := r.awaitWorkers(ctx), r.claim
	if r.inbox.hasOutage() {
		n, claim = r.awaitProbe(ctx, n), r.claimProbe
	} else {
		r.untried = false
	}
	if n == 0 {
		return store.Claims{}, nil
	}
	found, err := claim(ctx, n) // if the answer to COMMIT was lost, it has the claims nevertheless: MarkStored rejects those that are not committed
	r.returnWorkers(n, len(found.Claims))
	for _, c := range found.Claims {
		r.running.Store(c.RowKey(), nil)
		r.workers.Go(func() { r.work(c) })
	}
	return found, err
}

// awaitWorkers waits for an idle worker, and returns the number of all idle ones. They are the caller's.
func (r *runner) awaitWorkers(ctx context.Context) (n int) {
	select {
	case <-r.idle:
		n = 1
	case <-ctx.Done():
		return 0
	}
	for n < r.inbox.Workers {
		select {
		case <-r.idle:
			n++
		default:
			return n
		}
	}
	return n
}

// returnWorkers makes the workers of n that are not used idle, and returns used.
func (r *runner) returnWorkers(n, used int) int {
	for range n - used {
		r.idle <- struct{}{}
	}
	return used
}

// awaitProbe has one worker try one event while there is an outage: once no other worker
// is busy. n workers are the caller's already. It returns 0 if ctx ends.
func (r *runner) awaitProbe(ctx context.Context, n int) int {
	for n < r.inbox.Workers && r.inbox.hasOutage() {
		select {
		case <-r.idle:
			n++
		case <-ctx.Done():
			return r.returnWorkers(n, 0)
		}
	}
	switch {
	case !r.inbox.hasOutage():
		return n
	case !sleep(ctx, r.inbox.Poll/10):
		return r.returnWorkers(n, 0)
	}
	return r.returnWorkers(n, 1)
}

// claimProbe claims the event for a single try in an outage: in turns one that was not tried yet, because the
// outage may be the failure of those that were, and the one that has waited longest. Without one
// of the former, the latter is tried every Poll.
func (r *runner) claimProbe(ctx context.Context, n int) (store.Claims, error) {
	r.position = claims.Position{}
	r.untried = !r.untried
	found, err := r.claim(ctx, n)
	if err != nil || !r.untried || len(found.Claims) > 0 {
		return found, err
	}
	r.untried, r.position = false, claims.Position{}
	if !sleep(ctx, r.inbox.Poll*9/10) {
		return found, nil
	}
	return r.claim(ctx, n)
}

// rest waits until there may be something to do.
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

// claim claims events for n workers. They are counted as running.
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
	alone := processSolo.Reserve()
	search := store.Search{
		Source: r.inbox.source.Name(), After: r.position.After(), Limit: n,
		Worker: r.signs.Own.ID, Running: r.runningKeys(),
		Crashed: crashesSolo, WithCrashed: alone, Untried: r.untried,
	}
	// Not cut off when ctx ends: an event that was claimed then would pass for a crash.
	found, err := query(context.WithoutCancel(ctx), r.inbox.pool, func(ctx context.Context, db store.DB) (store.Claims, error) {
		return store.FindClaims(ctx, db, search)
	})
	r.position.Seen(found)
	if err != nil {
		r.searchAll.Store(true) // for claims without an answer
	}
	if alone && !slices.ContainsFunc(found.Claims, runsSolo) {
		processSolo.Unreserve()
	}
	processSolo.Leave(n - len(found.Claims))
	return found, err
}

// endDeadEvery is the interval at which each process looks for the sessions of dead workers.
const endDeadEvery = 10 * time.Second

// lookAround ends what dead workers have left, and each minute makes events due that are held back behind nothing, until
// ctx ends.
func (r *runner) lookAround(ctx context.Context) {
	for promoted := time.Now(); sleep(ctx, endDeadEvery); {
		err := r.endDeadSessions(ctx)
		if time.Since(promoted) >= promoteEvery {
			promoted = time.Now()
			_, promoting := r.promoteStuck(ctx, false)
			err = errors.Join(err, promoting)
		}
		if err != nil && ctx.Err() == nil {
			r.inbox.logError(ctx, "webhook workers cannot look for what dead ones have left, and for events that wait for nothing", Event{}, err)
		}
	}
}

// promoteStuck makes events due that are held back behind nothing. While another process looks for them, wait
// has it wait for the end of that look, instead of leaving them to it.
func (r *runner) promoteStuck(ctx context.Context, wait bool) (n int64, err error) {
	promoted, err := r.inbox.promoteAll(ctx, wait)
	if err != nil {
		return promoted, err
	}
	adopted, err := query(ctx, r.inbox.pool, func(ctx context.Context, db store.DB) (int64, error) {
		return store.Adopt(ctx, db, r.inbox.source.Name())
	})
	return promoted + adopted, err
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
