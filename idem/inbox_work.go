package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// work processes one claim, and ends it: the event is done, or its row says what
// comes next.
func (r *runner) work(c store.Claim) {
	ctx, cancel := context.WithTimeout(r.attempts, r.inbox.Timeout)
	defer cancel()
	defer func() {
		ofProcess.leave(1)
		r.free <- struct{}{}
	}()
	if c.Crashes >= crashedAlone {
		defer ofProcess.give()
		if c.Crashes < r.inbox.MaxCrashes && !ofProcess.runAlone(ctx) {
			_, _ = r.release(ctx, c)
			return
		}
	}
	ctx, s := r.inbox.start(ctx, StageAttempt, Event(c.Event), c.Trace, time.Now())
	outcome, err := r.process(ctx, c)
	if errors.Is(err, pgtx.ErrTimedOut) && r.stopped() {
		r.timedOut.Add(1)
	}
	if outcome == "" && err != nil {
		r.inbox.logError(ctx, "webhook claim could not be released, and passes for a crash", Event(c.Event), err)
	}
	s.report(ctx, Observation{Event: Event(c.Event), Outcome: outcome, Err: wrap(Event(c.Event), err)})
}

// process runs the event's handler, and says in the event's row if that does not
// end with a commit.
func (r *runner) process(ctx context.Context, c store.Claim) (Outcome, error) {
	i, e := r.inbox, Event(c.Event)
	if c.Crashes >= i.MaxCrashes {
		err := fmt.Errorf("%d processes died while they processed it: fix the handler, then replay it", c.Crashes)
		return r.settle(ctx, c, store.End{State: store.Parked, Free: i.PassParked}, err)
	}
	work, err := i.route(e)
	switch {
	case i.ignores(e): // since it was stored
		work = func(context.Context, pgx.Tx) error { return nil }
	case err != nil:
		return r.fail(ctx, c, NoRetry(err))
	case work == nil:
		return r.settle(ctx, c, store.End{State: store.Unhandled, Free: true}, nil)
	}
	promoted := false
	outcome, err := i.execute(ctx, attempt{event: e, work: work, mark: i.markClaimed(c), last: promote(e, &promoted)})
	if promoted {
		i.wakeOwn()
	}
	switch outcome {
	case Retrying:
		return r.fail(ctx, c, err)
	case Duplicate:
		_, err := r.release(ctx, c)
		return "", err
	case Unknown:
		return r.reconcile(ctx, c, err)
	}
	return outcome, err
}

// markClaimed marks an event that a worker has claimed. It does not wait for
// others that process an event of the same entity: they may take long.
func (i *Inbox) markClaimed(c store.Claim) func(*pgx.Batch, *store.Session) {
	how := store.Stored{States: []string{store.Pending}, Start: c.Start, KeepBody: i.KeepPayloads}
	return func(b *pgx.Batch, s *store.Session) { store.MarkStored(b, c.Event, how, s) }
}

// fail ends a claim whose attempt failed, or did not come to the handler.
func (r *runner) fail(ctx context.Context, c store.Claim, cause error) (Outcome, error) {
	i := r.inbox
	if r.stopped() || !isFinal(cause) && !pgtx.WorkFailed(cause) {
		_, err := r.release(ctx, c)
		return Retrying, errors.Join(cause, err)
	}
	attempt, wait := c.Attempts+1, time.Until(retryAt(cause))
	park := store.End{State: store.Parked, Attempts: 1, Free: i.PassParked}
	switch {
	case isFinal(cause):
		return r.settle(ctx, c, park, cause)
	case wait > 0: // asked for, and so not counted
		return r.settle(ctx, c, store.End{State: store.Pending, Wait: wait}, cause)
	case attempt >= i.MaxAttempts:
		return r.settle(ctx, c, park, cause)
	}
	return r.settle(ctx, c, store.End{State: store.Pending, Attempts: 1, Wait: i.backoff(attempt)}, cause)
}

// backoff is the inbox's Backoff, which is the application's code.
func (i *Inbox) backoff(attempt int) (wait time.Duration) {
	if err := pgtx.Protect(func() error { wait = i.Backoff(attempt); return nil }); err != nil {
		wait = DefaultBackoff(attempt)
	}
	return max(wait, 0)
}

// stopped tells whether the workers are stopped, and their handlers canceled.
func (r *runner) stopped() bool { return r.attempts.Err() != nil }

// settle ends a claim as end says, with cause as the event's last error.
func (r *runner) settle(ctx context.Context, c store.Claim, end store.End, cause error) (Outcome, error) {
	end.LastError = errorText(cause)
	settled, tries := false, 0
	err := r.insist(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		tries++
		settled, err = store.Settle(ctx, conn, c, end)
		return err
	})
	switch {
	case err != nil:
		return Retrying, errors.Join(cause, fmt.Errorf("the failure could not be recorded, and passes for a crash: %w", err))
	case !settled && tries == 1: // done by another process, or by this handler with a COMMIT of its own
		return Duplicate, cause
	case end.State == store.Pending:
		return Retrying, cause
	}
	return Outcome(end.State), cause
}

// release leaves the event to the next worker. released is false if it is done,
// or another's already.
func (r *runner) release(ctx context.Context, c store.Claim) (released bool, err error) {
	err = r.insist(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		released, err = store.Release(ctx, conn, c)
		r.postponed.Store(true)
		return err
	})
	return released, err
}

// reconcile finds out about a claim whose COMMIT was not answered: either the
// event is done, or goes to the next worker.
func (r *runner) reconcile(ctx context.Context, c store.Claim, cause error) (Outcome, error) {
	released, err := r.release(ctx, c)
	if err != nil || released {
		return Retrying, errors.Join(cause, err)
	}
	var found store.Found // its lease may have ended, and the event be another worker's
	err = r.insist(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		b := &pgx.Batch{}
		store.Look(b, c.Event, &found)
		return conn.SendBatch(ctx, b).Close()
	})
	if err != nil || found.State != store.Done {
		return Retrying, errors.Join(cause, err)
	}
	return Done, nil
}

// insist repeats a statement while Postgres is away, or found a deadlock, until
// the lease would have ended. What it could not record passes for a crash.
func (r *runner) insist(ctx context.Context, f func(context.Context, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
	defer cancel()
	for tries := 1; ; tries++ {
		err := pgtx.Ask(ctx, r.inbox.pool, f)
		if err == nil || !pgtx.Unavailable(err) && !pgtx.Retryable(err) || !pause(ctx, tries) {
			return err
		}
	}
}
