package idem

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// attempt is one execution of a handler, in one transaction with the record that
// its event is done. Deliveries, workers, replays and dry runs all run one; they
// differ in how they mark the event.
type attempt struct {
	event Event
	work  Work
	dry   bool // rolled back at the end, whatever is stored

	mark      func(*pgx.Batch, *store.Session) // records the event as done, if it is this attempt's
	otherwise func(*pgx.Batch)                 // executed when it is not, after the rollback
	last      func(*pgx.Batch)                 // executed with COMMIT
}

// maxRuns is how often a handler runs when Postgres asks to run its transaction
// again.
const maxRuns = 4

// execute runs a until it is done, has failed, or time is up. Duplicate means
// that the event was not this attempt's to mark.
func (c *Common) execute(ctx context.Context, a attempt) (Outcome, error) {
	for runs := 1; ; runs++ {
		outcome, err := c.try(ctx, a)
		if outcome != Retrying || !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return outcome, err
		}
		// The handler may have changed what it was given: decode it anew.
		if a.work, err = c.route(a.event); err != nil {
			return Retrying, err
		}
	}
}

// try is one run: mark, work, commit.
func (c *Common) try(ctx context.Context, a attempt) (Outcome, error) {
	t, err := pgtx.Begin(ctx, c.pool, func(b *pgx.Batch, s *pgtx.Session) { a.mark(b, (*store.Session)(s)) })
	if err != nil {
		return Retrying, explain(err)
	}
	defer t.Close(ctx)
	if !t.Marked() && !a.dry {
		return Duplicate, a.notMarked(ctx, t)
	}
	s := &handling{event: a.event, dry: a.dry, after: &hooks{}}
	if err := t.Run(withHandling(ctx, s), a.work); err != nil {
		return Retrying, err
	}
	last := s.statements()
	if a.dry {
		err := t.Check(ctx, last)
		return outcomeOf(err), err
	}
	if a.last != nil {
		if last == nil {
			last = &pgx.Batch{}
		}
		a.last(last)
	}
	if err := t.Commit(ctx, last); err != nil {
		return outcomeOf(err), err
	}
	t.Close(ctx) // before the hooks: they may want a connection
	s.after.run(ctx, func(err error) { c.logError(ctx, "webhook AfterCommit function failed", a.event, err) })
	return Done, nil
}

func (a attempt) notMarked(ctx context.Context, t *pgtx.Tx) error {
	if a.otherwise == nil {
		return nil
	}
	return t.Rollback(ctx, a.otherwise)
}

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, pgtx.ErrUnknown):
		return Unknown
	}
	return Retrying
}

// markNew marks an event that is not stored.
func (c *Common) markNew(e Event) func(*pgx.Batch, *store.Session) {
	return func(b *pgx.Batch, s *store.Session) { store.Mark(b, e.row(), c.KeepPayloads, s) }
}

// markStored marks an event that is stored, in one of states. It waits while
// another event of the entity is being processed.
func (c *Common) markStored(e Event, states ...string) func(*pgx.Batch, *store.Session) {
	how := store.Stored{States: states, Wait: true, KeepBody: c.KeepPayloads}
	return func(b *pgx.Batch, s *store.Session) { store.MarkStored(b, e.row(), how, s) }
}

// promote has the next event of e's entity go on. promoted is set if it was held
// back.
func promote(e Event, promoted *bool) func(*pgx.Batch) {
	return func(b *pgx.Batch) { store.Promote(b, e.row().Lane(), promoted) }
}

// again runs a transaction of many rows again when it met another in a deadlock.
func again(ctx context.Context, f func() error) error {
	for runs := 1; ; runs++ {
		if err := f(); !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return err
		}
	}
}

// pause waits a little longer after each try, with jitter so that those who
// met once do not meet again. It reports whether there is time for another.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 6), 500*time.Millisecond)
	return sleep(ctx, d/2+rand.N(d))
}

// sleep reports whether ctx has let it sleep so long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
