package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Discard gives up the events that f chooses: the events will not be processed, and a delivery of one is a
// duplicate. Their payloads are deleted, unless KeepPayloads is set; the reason stays in the table, as the
// last error, until Prune forgets the event. Later events of their entities are then processed. Events that are being
// processed are left. Discard returns the number of discarded events.
//
// Name the events to discard: the zero Filter is refused.
func (i *Inbox) Discard(ctx context.Context, f Filter, reason string) (int64, error) {
	return i.discard(ctx, f, reason, unrecorded)
}

// recorder gets the row keys of events in the transaction that changes them, to record them. If it returns an
// error, the transaction is rolled back.
type recorder = func(ctx context.Context, tx pgx.Tx, events []string) error

func (i *Inbox) discard(ctx context.Context, f Filter, reason string, record recorder) (int64, error) {
	if f.IsZero() {
		return 0, errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, Events, States or times")
	}
	var discarded, lanes []string
	keys, err := i.find(ctx, f)
	if err == nil {
		err = i.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			discarded, lanes, err = store.Discard(ctx, tx, keys, f.states(), errorText(errors.New("discarded: "+reason)), i.KeepPayloads)
			if err != nil {
				return err
			}
			if err := record(ctx, tx, discarded); err != nil {
				return err
			}
			return store.PromoteWaiting(ctx, tx, lanes)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", store.Explain(err))
	}
	// Again, for events that were held back during a long transaction: the commit of an earlier event may
	// have chosen a row to promote that is gone now. If this fails, the workers find the events within a
	// minute.
	_ = i.change(ctx, func(ctx context.Context, tx pgx.Tx) error { return store.PromoteWaiting(ctx, tx, lanes) })
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
