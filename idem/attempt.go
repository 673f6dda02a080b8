package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// attempt is one execution of a handler, in one transaction with the record that
// its event is done. Deliveries, workers, replays and dry runs differ in how they
// mark the event. When Postgres asks to run the transaction again, the handler runs
// again, maxRuns times at most: that is still one attempt.
type attempt struct {
	event Event
	work  Work
	dry   bool // rolled back at the end, for any stored state

	mark        func(*pgx.Batch, *pgtx.Session) // records the event as done, unless it must not be processed here
	ifNotMarked func(*pgx.Batch)                // executed after the rollback if mark has marked nothing; may be nil
	atCommit    func(*pgx.Batch)                // executed with COMMIT; may be nil
}

// execute makes an attempt. Duplicate means that the event was not marked, and no
// handler ran.
func (c *Common) execute(ctx context.Context, a attempt) (Outcome, error) {
	for runs := 1; ; runs++ {
		outcome, err := c.runOnce(ctx, a)
		if _, ofWork := errors.AsType[*pgtx.WorkError](err); ofWork {
			err = c.redacted(err)
		}
		if outcome != Retrying || !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return outcome, err
		}
		// The handler may have changed its event: decode it anew. An ignored event has none.
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
	t, err := pgtx.Begin(ctx, c.pool, a.mark)
	if err != nil {
		return Retrying, explain(err)
	}
	defer t.Close(ctx)
	if !t.Marked() && !a.dry {
		if a.ifNotMarked != nil {
			if err := t.Rollback(ctx, a.ifNotMarked); err != nil {
				return Retrying, fmt.Errorf("looking at the stored event: %w", explain(err))
			}
		}
		return Duplicate, nil
	}
	defer func() { c.logSpoiled(ctx, t, a.event) }()
	h := &handling.Handling{Event: a.event.row(), Dry: a.dry, After: &handling.Hooks{}}
	if err := t.Run(handling.With(ctx, h), a.work); err != nil {
		return Retrying, err
	}
	declared, ours := h.Statements()
	if a.dry {
		err := t.Check(ctx, declared, ours)
		return outcomeOf(err), err
	}
	if a.atCommit != nil {
		a.atCommit(ours)
	}
	if err := t.Commit(ctx, declared, ours); err != nil {
		return outcomeOf(err), err
	}
	t.Close(ctx) // before the hooks: they may want a connection
	if a.atCommit != nil && t.Strict() {
		c.commitAgain(ctx, a)
	}
	h.After.Run(ctx, func(err error) { c.logError(ctx, "webhook AfterCommit function failed", a.event, c.redacted(err)) })
	return Done, nil
}

// logSpoiled says once that connections are closed because of the statements of handlers.
func (c *Common) logSpoiled(ctx context.Context, t *pgtx.Tx, e Event) {
	if t.Spoiled() {
		c.spoiled.Do(func() {
			c.logAttrs(ctx, slog.LevelWarn, "webhook handler may leave settings in its session, or a temporary table, a cursor or a lock, which the next event would meet: "+
				"the connection is closed after each such event. Write SET LOCAL, set_config with true, ON COMMIT DROP or pg_advisory_xact_lock, and use tx instead of tx.Conn()", nameAttrs(e))
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

// commitAgain executes once more the statements that were executed with the COMMIT of an attempt. At an
// isolation that is stricter than Postgres's default, they have not seen rows that others committed
// while the handler ran. Workers find by themselves the events that were missed, within a minute.
func (c *Common) commitAgain(ctx context.Context, a attempt) {
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	err := exec(ctx, c.pool, func(ctx context.Context, db store.DB) error {
		b := &pgx.Batch{}
		a.atCommit(b)
		return store.ReadCommitted(ctx, db, b)
	})
	if err != nil {
		c.logError(ctx, "webhook events behind this one wait up to a minute", a.event, err)
	}
}

// markNew marks an event that is not stored, and that waits for no earlier one of its entity.
func (c *Common) markNew(e Event) func(*pgx.Batch, *pgtx.Session) {
	return func(b *pgx.Batch, s *pgtx.Session) { store.Mark(b, e.row(), c.KeepPayloads, s) }
}

// markStored marks an event that is stored, in one of states. It waits while
// another event of the entity is being processed.
func (c *Common) markStored(e Event, states ...string) func(*pgx.Batch, *pgtx.Session) {
	how := store.Stored{States: states, Wait: true, Archive: c.KeepPayloads}
	return func(b *pgx.Batch, s *pgtx.Session) { store.MarkStored(b, e.row(), how, s) }
}

// promote makes the next event of e's entity due. promoted, which may be nil, is set to
// whether it was held back.
func promote(e Event, promoted *bool) func(*pgx.Batch) {
	return func(b *pgx.Batch) { store.Promote(b, e.row().Lane(), promoted) }
}
