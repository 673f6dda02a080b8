package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/prune"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Discard gives up the events that f chooses: the events will not be processed, and a delivery of one is a
// duplicate. Their payloads are deleted, unless KeepPayloads is set; the reason stays in the table, as the
// last error, until Prune forgets the event. Later events of their entities are then processed, by workers or
// by [Processor.Run]. Events that are being processed are left. Discard returns the number of discarded
// events.
//
// Name the events to discard: the zero Filter is refused.
func (c *Common) Discard(ctx context.Context, f Filter, reason string) (int64, error) {
	return c.discard(ctx, f, reason, unrecorded)
}

// recorder gets the row keys of events in the transaction that changes them, to record them. If it returns an
// error, the transaction is rolled back.
type recorder = func(ctx context.Context, tx pgx.Tx, events []string) error

func (c *Common) discard(ctx context.Context, f Filter, reason string, record recorder) (int64, error) {
	if f.IsZero() {
		return 0, errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, Events, States or times")
	}
	var discarded, lanes []string
	keys, err := c.find(ctx, f)
	if err == nil {
		err = c.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			discarded, lanes, err = store.Discard(ctx, tx, keys, f.states(), errorText(errors.New("discarded: "+reason)), c.KeepPayloads)
			if err != nil {
				return err
			}
			if err := record(ctx, tx, discarded); err != nil {
				return err
			}
			return store.PromoteHeld(ctx, tx, lanes)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", store.Explain(err))
	}
	// Again, for events that were held back during a long transaction: the commit of an earlier event may
	// have chosen a row to promote that is gone now. If this fails, the workers find the events within a
	// minute.
	_ = c.change(ctx, func(ctx context.Context, tx pgx.Tx) error { return store.PromoteHeld(ctx, tx, lanes) })
	return int64(len(discarded)), nil
}

func unrecorded(context.Context, pgx.Tx, []string) error { return nil }

// Requeue makes the events that f chooses pending, as if they had just arrived, each at its place in the
// order of its entity: workers process them. Events that are being processed are left. Requeue returns the
// number of requeued events.
//
// Requeue does not check that workers run: see operator.Operator.PlanRequeue, which does.
func (i *Inbox) Requeue(ctx context.Context, f Filter) (int64, error) {
	return i.requeue(ctx, f, unrecorded)
}

func (i *Inbox) requeue(ctx context.Context, f Filter, record recorder) (int64, error) {
	var requeued []string
	keys, err := i.find(ctx, f)
	if err == nil {
		err = i.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			if requeued, err = store.Requeue(ctx, tx, keys, f.states()); err != nil {
				return err
			}
			return record(ctx, tx, requeued)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", store.Explain(err))
	}
	i.wakeAll()
	return int64(len(requeued)), nil
}

// Prune forgets the source's done, unhandled and discarded events that arrived longer ago than Retention.Events, by
// the database's clock, with their payloads, and returns their number. Pending and retrying events stay, and
// so do parked ones, unless Retention.Parked is set. Prune deletes archived bodies after Retention.Payloads, and
// entries of the audit trail after Retention.Audit. It also repairs the traces of events that were deleted by
// hand, and makes retrying events unhandled if their type is ignored by now.
//
// A jump of the clock forgets nothing at once. Prune counts the events of each day, in UTC, and remembers the
// counts. It forgets a whole day, Retention after its end by the clock of an earlier run, at least 23 hours
// ago: so the first run forgets nothing, and an event stays up to three days longer than Retention. If a day
// that is over suddenly has more events, they arrived while the clock was wrong: the day is forgotten
// Retention after Prune has found them. If the clock is behind the time of the last run, Prune returns an
// error.
//
// It reads the tables twice from end to end (there is no index for it, because every delivery would pay for
// that), a megabyte at a time, each committed on its own, and waits for no delivery: run it daily from any
// process. A forgotten event that is delivered again is processed again: so Prune returns an error if
// Retention.Events is shorter than 31 days, unless AllowProcessingTwice is set.
func (c *Common) Prune(ctx context.Context) (deleted int64, err error) {
	p, err := c.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	if deleted, err = p.Run(ctx, func(eventType string) bool { return c.ignores(Event{Type: eventType}) }); err != nil {
		return deleted, fmt.Errorf("idem: pruning events: %w", store.Explain(err))
	}
	return deleted, nil
}

// planPrune counts the events, and finds the ones to forget.
func (c *Common) planPrune(ctx context.Context) (*prune.Plan, error) {
	if err := c.checkRetention(); err != nil {
		return nil, err
	}
	ages := prune.Ages{Events: c.Retention.Events, Parked: c.Retention.Parked, Archived: c.Retention.Payloads, Actions: c.Retention.Audit}
	p, err := prune.NewPlan(ctx, c.pool, c.source.Name(), ages)
	if err != nil {
		return nil, fmt.Errorf("idem: pruning events: %w", store.Explain(err))
	}
	return p, nil
}

// checkRetention returns an error if Retention would have events processed twice.
func (c *Common) checkRetention() error {
	switch r := c.Retention; {
	case r.Events <= 0:
		return errors.New("idem: Retention is zero or less: every event would be forgotten")
	case r.Events < minRetention && !r.AllowProcessingTwice:
		return fmt.Errorf("idem: Retention is %s, and an event that is delivered again after that is processed again: "+
			"set %d days or more, or AllowProcessingTwice if that is meant", r.Events, minRetention/day)
	}
	return nil
}
