package idem

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// job is an event whose work is to be done: a delivery's, or a worker's.
type job struct {
	p      *Processor
	ctx    context.Context // ends in time, and not when a client leaves
	event  Event
	mark   func(*transaction) error // begins, and marks the event as done
	begun  *transaction             // which another job has begun for this one; nil if none has
	next   func() *job              // takes what to begin with COMMIT; nil, or what it returns is, for nothing
	within time.Duration            // how long getting a connection may take; 0 is as long as ctx
	hung   func()                   // called when the handler does not return in time
}

// maxTries is how often a handler is run for one delivery when Postgres asks
// to run its transaction again (40001, 40P01).
const maxTries = 4

// try works on an event until it is done, has failed, or time is up.
func (j *job) try(work Work) (Outcome, error) {
	for tries, runs := 1, 1; ; tries++ {
		outcome, err := j.attempt(work)
		twin := errors.Is(err, errTwin) // stepping back for one is no run of the handler
		switch {
		case err == nil || outcome == Unknown:
			return outcome, err
		case !twin && (runs >= maxTries || !retryable(err)), !pause(j.ctx, tries):
			return Retrying, err
		case twin:
			continue
		}
		runs++
		// The handler may have changed the event it was given: decode it anew.
		j.event.Decoded = nil
		if work, err = j.p.source.Route(j.event); err != nil {
			return Retrying, err
		}
	}
}

// attempt is one try: mark, work, commit, in one transaction.
func (j *job) attempt(work Work) (Outcome, error) {
	t, err := j.begin()
	if err != nil {
		return Retrying, err
	}
	defer t.release()
	if !t.marked {
		return Duplicate, nil
	}
	ctx, scope := withScope(j.ctx, j.event)
	if err := t.work(ctx, work, j.hung); err != nil {
		return Retrying, err
	}
	if outcome, err := t.commit(scope.queued(), j.following(scope)); err != nil {
		return outcome, err
	}
	t.release() // before the hooks: they may want a connection
	j.p.runHooks(ctx, scope)
	return Done, nil
}

// begin returns the transaction that was begun for this job, or begins one.
func (j *job) begin() (*transaction, error) {
	if t := j.begun; t != nil {
		j.begun = nil
		return t, nil
	}
	return j.p.begin(j.ctx, j.within, j.mark)
}

// unbegin rolls back what was begun for this job, and not used: it holds the
// event's row.
func (j *job) unbegin() {
	if j.begun != nil {
		j.begun.release()
		j.begun = nil
	}
}

// following is what to begin with the commit: nothing if hooks come first.
func (j *job) following(s *scope) *job {
	if j.next == nil || s.hooked() {
		return nil
	}
	return j.next()
}

// pause waits a little longer after each try, with jitter so that those who
// met once do not meet again. It reports whether there is time for another.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 6), 500*time.Millisecond)
	return rest(ctx, d/2+rand.N(d))
}

// rest waits, and reports whether it did so to the end.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
