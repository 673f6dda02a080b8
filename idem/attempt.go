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
// First tries, workers, replays, reruns and dry runs differ in how they mark the event. When Postgres asks to run the
// transaction again, the handler runs again, maxRuns times at most: all runs are one attempt.
type attempt struct {
	event  Event
	row    store.Event // the event as it is stored
	work   Work
	around func(Work) Work // of the work of further runs; may be nil
	dry    bool            // rolled back at the end, for any stored state
	again  bool            // of a done event, whose row stays as it is

	stored *store.Stored // how a claimed event is marked; nil for a new one
	failed time.Time     // when the attempt before this one failed; zero if none has
}

// verdict is the result of an attempt.
type verdict struct {
	outcome  Outcome
	err      error
	found    store.Found // the stored event, if a new one was not marked
	promoted bool        // the next event of the lane was held back, and is due now
	begun    time.Time   // by the database's clock; zero if no handler ran
}

// notMarked is the outcome of an attempt that did not mark its event: no handler ran. Nobody is told of it: each
// caller of execute makes another outcome of it.
const notMarked Outcome = "not marked"

// execute makes an attempt.
func (i *Inbox) execute(ctx context.Context, a attempt) verdict {
	var begun time.Time // of the first run: the event keeps its place
	for runs := 1; ; runs++ {
		v := i.runOnce(ctx, a)
		if begun.IsZero() {
			begun = v.begun
		}
		v.begun = begun
		if _, ofWork := errors.AsType[*pgtx.WorkError](v.err); ofWork {
			v.err = i.redacted(v.err)
		}
		if v.outcome != Retrying || !pgtx.Retryable(v.err) || runs == maxRuns || !pause(ctx, runs) {
			return v
		}
		// The handler may have changed its event: decode it anew. An ignored event has no work to decode.
		work, err := i.route(a.event)
		switch {
		case err != nil:
			return verdict{outcome: Retrying, err: err, begun: begun}
		case work != nil && a.around != nil:
			a.work = a.around(work)
		case work != nil:
			a.work = work
		}
	}
}

// runOnce runs the transaction once: mark, work, commit.
func (i *Inbox) runOnce(ctx context.Context, a attempt) (v verdict) {
	t, err := pgtx.Begin(ctx, i.pool, func(b *pgx.Batch, s *pgtx.Session) { a.mark(b, s, i.KeepPayloads) })
	if err != nil {
		return verdict{outcome: Retrying, err: store.Explain(err)}
	}
	defer t.Close(ctx)
	if !t.Marked() && !a.dry {
		if a.stored == nil {
			if err := t.Rollback(ctx, func(b *pgx.Batch) { store.Look(b, a.row, &v.found) }); err != nil {
				return verdict{outcome: Retrying, err: fmt.Errorf("looking at the stored event: %w", store.Explain(err))}
			}
		}
		v.outcome = notMarked
		return v
	}
	defer func() { i.logSpoiled(ctx, t, a.event) }()
	h := &handling.Handling{Event: a.event.row(), Failed: a.failed, Dry: a.dry, After: &handling.Hooks{}}
	v.begun = t.StartedAt()
	if err := t.Run(handling.With(ctx, h), a.work); err != nil {
		v.outcome, v.err = Retrying, err
		return v
	}
	declared, ours := h.Statements()
	if a.dry {
		err := t.Check(ctx, declared, ours)
		return verdict{outcome: outcomeOf(err), err: err}
	}
	if a.stored != nil {
		store.Promote(ours, a.row.Lane(), &v.promoted)
	}
	if err := t.Commit(ctx, declared, ours); err != nil {
		v.outcome, v.err, v.promoted = outcomeOf(err), err, false
		return v
	}
	t.Close(ctx) // before the hooks, which may want a connection
	if a.stored != nil && t.Strict() {
		i.promoteAgain(ctx, a, &v.promoted)
	}
	h.After.Run(ctx, func(err error) { i.logError(ctx, "webhook AfterCommit function failed", a.event, i.redacted(err)) })
	v.outcome = Done
	return v
}

// mark records the event as done, unless the event must not be processed here.
func (a attempt) mark(b *pgx.Batch, s *pgtx.Session, archive bool) {
	switch {
	case a.again:
		store.MarkAgain(b, a.row, s)
		return
	case a.stored == nil:
		store.Mark(b, a.row, archive, s)
		return
	}
	how := *a.stored
	how.Archive = archive
	store.MarkStored(b, a.row, how, s)
}

// logSpoiled logs once that connections are closed because of the statements of handlers.
func (i *Inbox) logSpoiled(ctx context.Context, t *pgtx.Tx, e Event) {
	if t.Spoiled() {
		i.spoiled.Do(func() {
			i.logAttrs(ctx, slog.LevelWarn, "webhook handler may leave settings in its session, which the next event would meet: "+
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
func (i *Inbox) promoteAgain(ctx context.Context, a attempt, promoted *bool) {
	ctx, cancel := pgtx.Finish(ctx)
	defer cancel()
	b := &pgx.Batch{}
	store.Promote(b, a.row.Lane(), promoted)
	if err := exec(ctx, i.pool, func(ctx context.Context, db store.DB) error { return store.ReadCommitted(ctx, db, b) }); err != nil {
		i.logError(ctx, "webhook events behind this one wait up to a minute", a.event, err)
	}
}
