package idem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/claims"
	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// processSolo lets one attempt of this process run alone. All inboxes of the process share it.
var processSolo claims.Solo

// work processes one claimed event, and ends the claim: the event is done, or its row says when and whether
// it is tried again.
func (r *runner) work(c store.Claim) {
	ctx, cancel := context.WithTimeout(r.attempts, r.inbox.Timeout)
	defer cancel()
	defer func() {
		// If the claim could not be ended, the next search finds the event. If it has ended, another worker may
		// have claimed the event already.
		r.running.CompareAndDelete(c.RowKey(), c.Number)
		processSolo.Leave(1)
		r.idle <- struct{}{}
	}()
	if runsSolo(c) {
		defer processSolo.Unreserve()
		if c.Crashes < claims.MaxCrashes {
			// The handler needs the other half of Timeout.
			if alone, again := processSolo.RunAlone(ctx, r.inbox.Timeout/2); !alone {
				_, _ = r.postpone(ctx, c, again)
				return
			}
		}
	}
	ctx, s := r.inbox.startSpan(ctx, StageAttempt, Event(c.Event), c.Trace, time.Now())
	var outcome Outcome
	err := pgtx.Protect(func() (err error) { // hooks of the pool are the application's
		outcome, err = r.process(ctx, c)
		return err
	})
	if errors.Is(err, pgtx.ErrTimedOut) && r.stopped() {
		r.timedOut.Add(1)
	}
	if outcome == "" && err != nil { // no attempt was made
		r.inbox.logAway(ctx, "webhook claim could not be ended, and its event is claimed again", Event(c.Event), err)
	}
	s.report(ctx, Observation{Event: Event(c.Event), Outcome: outcome, Err: wrap(Event(c.Event), err), AtLast: outcome == Done && (c.SinceFailure != nil || c.Crashes > 0)})
}

// process runs the event's handler. If the attempt is not committed, process records the result in the
// event's row.
func (r *runner) process(ctx context.Context, c store.Claim) (Outcome, error) {
	i, e := r.inbox, Event(c.Event)
	if before, ok := r.unended.LoadAndDelete(c.RowKey()); ok && c.Again {
		u := before.(unended)
		return r.endClaim(ctx, c, u.end, u.cause)
	}
	if c.Crashes >= claims.MaxCrashes {
		err := fmt.Errorf("%d processes died while they processed it, or were cut off from Postgres: fix the handler, then replay it", c.Crashes)
		return r.endClaim(ctx, c, store.End{State: store.Parked, LeavesLane: i.PassParked}, err)
	}
	if i.runsFirst(c.RowKey()) {
		_, err := r.postpone(ctx, c, soon(c))
		return "", err
	}
	if wait := i.outage().Hold(e.Type); wait > 0 {
		r.holds.Store(true)
		_, err := r.postpone(ctx, c, wait)
		return "", err
	}
	work, err := i.route(e)
	switch {
	case i.ignores(e): // the type is ignored since the event was stored
		work = func(context.Context, pgx.Tx) error { return nil }
	case err != nil:
		return r.fail(ctx, c, NoRetry(err))
	case work == nil:
		return r.endClaim(ctx, c, store.End{State: store.Unhandled, LeavesLane: true}, nil)
	}
	v := r.attempt(ctx, c, work)
	switch v.outcome {
	case Retrying, Unknown:
		return r.fail(ctx, c, v.err)
	case notMarked:
		_, err := r.postpone(ctx, c, store.PostponeTime)
		return "", err
	}
	return v.outcome, v.err
}

// attempt makes an attempt at a claimed event. A replay waits for another attempt in the lane; a worker has others to
// do.
func (r *runner) attempt(ctx context.Context, c store.Claim, work Work) verdict {
	failed := time.Time{}
	if c.SinceFailure != nil {
		failed = time.Now().Add(-*c.SinceFailure)
	}
	how := &store.Stored{Claim: c.Number, Worker: r.signs.Own.ID, Wait: r.signs.Own.Replays}
	v := r.inbox.execute(ctx, attempt{event: Event(c.Event), row: c.Event, work: work, failed: failed, stored: how})
	if v.promoted {
		r.inbox.wakeOwn()
	}
	return v
}

// fail ends a claim after an attempt that failed, did not reach the handler, or whose COMMIT was not
// answered. Once the handler ran, the attempt counts, whatever its error says; for a while, errors that may
// pass by themselves do not.
func (r *runner) fail(ctx context.Context, c store.Claim, cause error) (Outcome, error) {
	i, final, ran := r.inbox, handling.IsFinal(cause), pgtx.WorkFailed(cause)
	attempt, wait := c.Attempts+1, time.Until(handling.RetryAt(cause))
	switch {
	case r.stopped():
		ended, err := r.postpone(ctx, c, store.PostponeTime)
		if err == nil && !ended && errors.Is(cause, pgtx.ErrUnknown) {
			return r.lookUp(ctx, c, cause)
		}
		return Retrying, errors.Join(cause, err)
	case !final && !ran: // the event is not to blame, and nothing is counted; the cause may last
		if r.leave(c, cause) {
			_, err := r.endClaim(ctx, c, store.End{State: store.Pending, Wait: maxPostpone}, nil)
			return Retrying, errors.Join(cause, err)
		}
		wait := soon(c)
		if r.draining { // Drain waits for the event
			wait = store.PostponeTime
		}
		_, err := r.postpone(ctx, c, wait)
		return Retrying, errors.Join(cause, err)
	case !final && pgtx.Passing(cause) && !lasts(c): // other transactions are the cause, and a back-off of hours would hold up the lane
		return r.endClaim(ctx, c, store.End{State: store.Pending, Wait: soon(c), Returned: true}, cause)
	case !final && wait > 0: // the handler has asked for the time, and nothing is counted
		return r.endClaim(ctx, c, store.End{State: store.Pending, Wait: wait, Returned: ran}, cause)
	case final, attempt >= i.MaxAttempts:
		return r.endClaim(ctx, c, store.End{State: store.Parked, Attempts: 1, LeavesLane: i.PassParked, Returned: ran}, cause)
	}
	return r.endClaim(ctx, c, store.End{State: store.Pending, Attempts: 1, Wait: i.backoff(attempt), Returned: ran}, cause)
}

// lasts reports whether an event has been started so often, or waits for so long, that a passing error
// counts.
func lasts(c store.Claim) bool { return c.Number >= startsPassing || c.Waited >= timePassing }

const (
	startsPassing = 50
	timePassing   = 10 * time.Minute // package health is red from then on
)

// backoff calls the inbox's Backoff, which is the application's code.
func (i *Inbox) backoff(attempt int) (wait time.Duration) {
	if err := pgtx.Protect(func() error { wait = i.Backoff(attempt); return nil }); err != nil {
		wait = defaultBackoff(attempt)
	}
	return max(wait, 0)
}

// stopped reports whether StopTimeout is over, and the handlers are canceled.
func (r *runner) stopped() bool { return r.attempts.Err() != nil }

// endClaim ends a claim as end says, with cause as the event's last error.
func (r *runner) endClaim(ctx context.Context, c store.Claim, end store.End, cause error) (Outcome, error) {
	end.LastError = errorText(cause)
	tries := 0
	ended, err := insist(ctx, r, func(ctx context.Context, db store.DB) (bool, error) {
		tries++
		return store.EndClaim(ctx, db, c, end)
	})
	switch {
	case err != nil:
		if end.Attempts > 0 {
			r.unended.Store(c.RowKey(), unended{end, cause})
		}
		return Retrying, errors.Join(cause, fmt.Errorf("the failure could not be recorded, and is counted once Postgres answers: %w", err))
	case !ended && errors.Is(cause, pgtx.ErrUnknown):
		return r.lookUp(ctx, c, cause)
	case !ended && tries == 1: // done by another process, or by this handler with a COMMIT of its own
		return Duplicate, cause
	case end.State == store.Pending:
		return Retrying, cause
	}
	return Outcome(end.State), cause
}

// lookUp returns the outcome of an attempt whose COMMIT was not answered, and whose claim has ended: the
// event is done, or others have taken this process for dead.
func (r *runner) lookUp(ctx context.Context, c store.Claim, cause error) (Outcome, error) {
	found, err := insist(ctx, r, func(ctx context.Context, db store.DB) (store.Found, error) {
		return store.LookUp(ctx, db, c.Event)
	})
	if err != nil || found.State != store.Done {
		return Retrying, errors.Join(cause, err)
	}
	return Done, nil
}

// soon returns the wait of an event that could not be processed and is not to blame. The wait grows with the
// number of claims.
func soon(c store.Claim) time.Duration {
	return min(store.PostponeTime<<min(c.Number, 10), maxPostpone)
}

// maxPostpone is the longest time that soon returns.
const maxPostpone = 5 * time.Second

// postpone ends a claim without a result: the event is due again after wait. ended is false if the event is
// done, or another worker has claimed it.
func (r *runner) postpone(ctx context.Context, c store.Claim, wait time.Duration) (ended bool, err error) {
	return insist(ctx, r, func(ctx context.Context, db store.DB) (bool, error) {
		defer r.postponed.Store(true)
		return store.EndClaim(ctx, db, c, store.End{State: store.Pending, Wait: wait})
	})
}

const (
	// insistTime limits the tries to record the end of a claim. If all fail, the same workers claim the event
	// again, as if the claim had never been.
	insistTime = 30 * time.Second
	// insistStopped limits the tries once the workers are stopped: other workers find the claim.
	insistStopped = 5 * time.Second
)

// insist is query for a statement at the end of a claim. It repeats the statement while Postgres is
// unavailable, finds a deadlock, or gives up a wait for a lock.
func insist[T any](ctx context.Context, r *runner, f func(context.Context, store.DB) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), insistTime)
	defer cancel()
	defer context.AfterFunc(r.attempts, func() { sleep(ctx, insistStopped); cancel() })()
	for tries := 1; ; tries++ {
		answer, err := query(ctx, r.inbox.pool, f)
		again := pgtx.Unavailable(err) || pgtx.Retryable(err) || pgtx.TookTooLong(err)
		if err == nil || !again || !pause(ctx, tries) {
			if err != nil {
				r.searchAll.Store(true)
			}
			return answer, err
		}
	}
}

// crashesSolo is the number of crashes in a row from which an event runs alone in its process, for its first 5
// seconds. When its handler returns, also with an error, the crashes are forgotten.
const crashesSolo = 2

func runsSolo(c store.Claim) bool { return c.Crashes >= crashesSolo }

// defaultBackoff is the default of an inbox's Backoff.
func defaultBackoff(attempt int) time.Duration {
	d := min(time.Second<<min(max(attempt, 1)-1, 12), time.Hour)
	return d*3/4 + rand.N(d/2)
}
