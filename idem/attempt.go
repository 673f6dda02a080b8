package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// attempt is one execution of a handler, in one transaction with the record that its event is done.
// Deliveries, workers, replays and dry runs differ in how they mark the event. When Postgres asks to run the
// transaction again, the handler runs again, maxRuns times at most: all runs are one attempt.
type attempt struct {
	event Event
	row   store.Event // the event as it is stored, with the entity that determines its lane
	work  Work
	dry   bool // rolled back at the end, for any stored state

	failed   time.Time     // when a worker's attempt before this one failed; zero if none has
	stored   *store.Stored // how a stored event is marked; nil for a new one
	found    *store.Found  // set if the event is not marked; may be nil
	promoted *bool         // set if a stored event's next one in its lane was held back; may be nil
}

// mark records the event as done, unless the event must not be processed here.
func (a attempt) mark(b *pgx.Batch, s *pgtx.Session, archive bool) {
	if a.stored == nil {
		store.Mark(b, a.row, archive, s)
		return
	}
	how := *a.stored
	how.Archive = archive
	store.MarkStored(b, a.row, how, s)
}

// promote makes the next event in a stored event's lane due.
func (a attempt) promote(b *pgx.Batch) { store.Promote(b, a.row.Lane(), a.promoted) }

// notMarked is the outcome of an attempt that did not mark its event: no handler ran. Nobody is told of it: each
// caller of execute makes another outcome of it.
const notMarked Outcome = "not marked"

// execute makes an attempt.
func (c *Common) execute(ctx context.Context, a attempt) (Outcome, error) {
	for runs := 1; ; runs++ {
		outcome, err := c.runOnce(ctx, a)
		if _, ofWork := errors.AsType[*pgtx.WorkError](err); ofWork {
			err = c.redacted(err)
		}
		if outcome != Retrying || !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return outcome, err
		}
		// The handler may have changed its event: decode it anew. An ignored event has no work to decode.
		work, err := c.route(a.event)
		if err != nil {
			return Retrying, err
		}
		if work != nil {
			a.work = work
		}
	}
}

// runOnce runs the transaction once: mark, work, commit.
func (c *Common) runOnce(ctx context.Context, a attempt) (Outcome, error) {
	t, err := pgtx.Begin(ctx, c.pool, func(b *pgx.Batch, s *pgtx.Session) { a.mark(b, s, c.KeepPayloads) })
	if err != nil {
		return Retrying, store.Explain(err)
	}
	defer t.Close(ctx)
	if !t.Marked() && !a.dry {
		if a.found != nil {
			if err := t.Rollback(ctx, func(b *pgx.Batch) { store.Look(b, a.row, a.found) }); err != nil {
				return Retrying, fmt.Errorf("looking at the stored event: %w", store.Explain(err))
			}
		}
		return notMarked, nil
	}
	defer func() { c.logSpoiled(ctx, t, a.event) }()
	h := &handling.Handling{Event: a.event.row(), Failed: a.failed, Dry: a.dry, After: &handling.Hooks{}}
	if err := t.Run(handling.With(ctx, h), a.work); err != nil {
		return Retrying, err
	}
	declared, ours := h.Statements()
	if a.dry {
		err := t.Check(ctx, declared, ours)
		return outcomeOf(err), err
	}
	if a.stored != nil {
		a.promote(ours)
	}
	if err := t.Commit(ctx, declared, ours); err != nil {
		return outcomeOf(err), err
	}
	t.Close(ctx) // before the hooks, which may want a connection
	if a.stored != nil && t.Strict() {
		c.promoteAgain(ctx, a)
	}
	h.After.Run(ctx, func(err error) { c.logError(ctx, "webhook AfterCommit function failed", a.event, c.redacted(err)) })
	return Done, nil
}

// logSpoiled logs once that connections are closed because of the statements of handlers.
func (c *Common) logSpoiled(ctx context.Context, t *pgtx.Tx, e Event) {
	if t.Spoiled() {
		c.spoiled.Do(func() {
			c.logAttrs(ctx, slog.LevelWarn, "webhook handler may leave settings in its session, which the next event would meet: "+
				"the connection is closed after each such event. Write SET LOCAL, or set_config with true, and use tx instead of tx.Conn()", nameAttrs(e)...)
		})
	}
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

// promoteAgain promotes once more after the COMMIT of an attempt. At an isolation that is stricter than
// Postgres's default, the promotion has not seen rows that others committed while the handler ran. Workers
// find the missed events within a minute.
func (c *Common) promoteAgain(ctx context.Context, a attempt) {
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	b := &pgx.Batch{}
	a.promote(b)
	if err := exec(ctx, c.pool, func(ctx context.Context, db store.DB) error { return store.ReadCommitted(ctx, db, b) }); err != nil {
		c.logError(ctx, "webhook events behind this one wait up to a minute", a.event, err)
	}
}
