package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// markClaimed is the mark of a worker: it finds the event as it was claimed, and
// no other event of its queue in work. One that is older by the provider's time
// may have arrived meanwhile, and so become the first of the queue.
const markClaimed = `
update idem_events set state = 'done', last_error = null, due_at = null
where event = $1 and state = 'pending' and attempts = $2 and coalesce(crashes, 0) = $3 and (due_at is null or due_at <= now())
  and pg_try_advisory_xact_lock(hashtextextended($4, tableoid::bigint))
  and ($5 or set_config('synchronous_commit', 'off', true) is not null)`

// What becomes of the payload of an event that is done. It is where it was found,
// or the claim is out of date.
const (
	settleClaimed = `update idem_payloads set done = true, queue = null where ctid = $1 and event = $2`
	deleteClaimed = `delete from idem_payloads where ctid = $1 and event = $2`
)

// putBack ends claims: the events were not tried. It tells how many are pending,
// and nobody else's.
const putBack = `
with mine as (
	select * from unnest($1::text[], $2::timestamptz[]) as mine (event, until)
), ended as (
	delete from idem_claims c using mine where c.event = mine.event and c.until = mine.until
)
update idem_events e set due_at = now() + $3::interval from mine where e.event = mine.event and e.state = 'pending'
  and not exists (select from idem_claims c where c.event = mine.event and c.until <> mine.until)`

// markFailed ends a claim whose work failed.
const markFailed = `
with failed as (
	update idem_events set state = $5, attempts = attempts + $6, last_error = $7,
		due_at = case $5 when 'pending' then now() + $8::interval end
	where event = $1 and state = 'pending' and attempts = $2 and coalesce(crashes, 0) = $3
	returning event
), ended as (
	delete from idem_claims where event = $1 and until = $4
), freed as (
	update idem_payloads p set queue = null from failed where p.ctid = $9 and p.event = failed.event and $10
)
select count(*) from failed`

// effort is a worker's work on one claim. It is settled once: by the goroutine
// that works or, when its handler hangs, without that.
type effort struct {
	job
	inbox   *Inbox
	claim   *claim
	start   time.Time
	cancel  context.CancelFunc
	settled sync.Once
	done    func(Outcome)
	follows *effort // on what waited when this one was committed; nil if nothing did
}

// effort prepares the work on a claim; done is called when that is settled.
func (i *Inbox) effort(ctx context.Context, c *claim, done func(Outcome)) *effort {
	w := &effort{inbox: i, claim: c, start: time.Now(), done: done}
	ctx, w.cancel = context.WithDeadline(ctx, w.start.Add(i.WorkTimeout))
	w.job = job{p: &i.Processor, ctx: ctx, event: c.event, within: lease / 2}
	w.mark = func(t *transaction) error { return t.markClaimed(c, i) }
	return w
}

// do works on the claim. If its handler hangs, or ends its goroutine, lost is
// called before that is settled.
func (w *effort) do(lost func()) {
	defer w.cancel()
	lost = sync.OnceFunc(lost)
	fail := func(err error) {
		lost()
		w.settle(w.fail(&workError{err}))
	}
	w.hung = func() { fail(errHung) }
	returned := false
	defer func() {
		if !returned {
			fail(errInterrupted)
		}
	}()
	o, err := w.run()
	returned = true
	w.settle(o, err)
}

func (w *effort) settle(o Outcome, err error) {
	w.settled.Do(func() {
		if err != nil {
			err = fmt.Errorf("idem: %s %s: %w", w.event.Type, w.event.ID, err)
		}
		if o != "" {
			w.p.report(w.ctx, Observation{Event: w.event, Outcome: o, Err: err, Duration: time.Since(w.start)})
		}
		w.done(o)
	})
}

func (w *effort) run() (Outcome, error) {
	if c := w.claim; c.crashes >= w.inbox.MaxCrashes {
		err := fmt.Errorf("%d processes died while they worked on it: mend the handler, then replay it", c.crashes)
		return w.end(Parked, StateParked, err, 0, 0)
	}
	work, err := w.p.source.Route(w.event)
	switch {
	case errors.Is(err, ErrIgnored):
		work = func(context.Context, pgx.Tx) error { return nil }
	case err != nil:
		return w.fail(NoRetry(err))
	case work == nil:
		return w.end(Unhandled, StateUnhandled, nil, 0, 0)
	}
	outcome, err := w.try(work)
	switch outcome {
	case Retrying:
		return w.fail(err)
	case Duplicate, Unknown:
		return w.lookBack(outcome, err)
	}
	return outcome, err
}

// lookBack finds out about a claim whose mark found nothing, or whose COMMIT
// was not answered: either way the event is done, or goes to the next worker.
func (w *effort) lookBack(o Outcome, cause error) (Outcome, error) {
	pending, err := w.putBack()
	switch {
	case err != nil || pending && o == Unknown:
		return Retrying, errors.Join(cause, err)
	case o == Unknown:
		return Done, nil
	}
	return "", nil // nothing to tell: it waits for another of its key, or was done by a delivery
}

func (t *transaction) markClaimed(c *claim, i *Inbox) error {
	return t.marks(t.send(func(b *pgx.Batch) {
		b.Queue(markClaimed, c.row, c.attempts, c.crashes, c.queue, i.WaitForDisk)
		if i.KeepPayloads {
			b.Queue(settleClaimed, c.place, c.row)
		} else {
			b.Queue(deleteClaimed, c.place, c.row)
		}
	}), 2)
}

// fail ends a claim whose work failed, or which did not come to it.
func (w *effort) fail(cause error) (Outcome, error) {
	var ran *workError
	if w.stopped() || leaving(cause) || !isFinal(cause) && !errors.As(cause, &ran) {
		_, err := w.putBack()
		return Retrying, errors.Join(cause, err)
	}
	attempt := w.claim.attempts + 1
	var later *laterError
	switch {
	case isFinal(cause):
		return w.end(Parked, StateParked, cause, 1, 0)
	case errors.As(cause, &later):
		return w.end(Retrying, StatePending, cause, 0, time.Until(later.at))
	case attempt >= w.inbox.MaxAttempts:
		return w.end(Parked, StateParked, cause, 1, 0)
	}
	return w.end(Retrying, StatePending, cause, 1, w.inbox.Backoff(attempt))
}

// stopped tells whether Run is over, and has cancelled the handler.
func (w *effort) stopped() bool { return errors.Is(context.Cause(w.ctx), errStopped) }

// end settles the claim in the database.
func (w *effort) end(o Outcome, state State, cause error, attempts int, wait time.Duration) (Outcome, error) {
	c, free := w.claim, state == StateUnhandled || state == StateParked && w.inbox.PassParked
	err := w.insist(func(ctx context.Context) error {
		_, err := w.p.pool.Exec(ctx, markFailed, c.row, c.attempts, c.crashes, c.until,
			string(state), attempts, errorText(cause), max(wait, 0), c.place, free)
		return err
	})
	return o, errors.Join(cause, err)
}

// putBack leaves the event to the next worker, if it is pending still.
func (w *effort) putBack() (pending bool, err error) {
	err = w.insist(func(ctx context.Context) error {
		n, err := w.inbox.putBack(ctx, 100*time.Millisecond, w.claim)
		pending = n > 0
		return err
	})
	return pending, err
}

func (i *Inbox) putBack(ctx context.Context, wait time.Duration, claims ...*claim) (int64, error) {
	var rows []string
	var times []time.Time
	for _, c := range claims {
		rows, times = append(rows, c.row), append(times, c.until)
	}
	tag, err := i.pool.Exec(ctx, putBack, rows, times, wait)
	return tag.RowsAffected(), err
}

// insist repeats a statement while Postgres is away: an unsettled claim would
// pass for a crash.
func (w *effort) insist(f func(context.Context) error) error {
	w.unbegin()
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), lease)
		err := f(ctx)
		cancel()
		if err == nil || !away(err) || w.stopped() {
			return err
		}
		pause(context.WithoutCancel(w.ctx), tries)
	}
}
