package idem

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Requeue has the workers process the events that f chooses again, as if they had
// just arrived, each in its place in the order of its entity. Events that are
// being processed are left. It returns how many it requeued.
//
// It does not ask whether workers run, here or elsewhere, now or later: see
// operator.Operator.Requeue, which does.
func (i *Inbox) Requeue(ctx context.Context, f Filter) (int64, error) {
	return i.RequeueFunc(ctx, f, unrecorded)
}

// RequeueFunc is Requeue for a caller that records it: changed gets the row keys of the requeued
// events in the transaction that requeues them, which is rolled back if it returns an error.
func (i *Inbox) RequeueFunc(ctx context.Context, f Filter, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	keys, err := i.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	return i.requeueAll(ctx, keys, f.states(), changed)
}

// requeueAll makes events pending by their row keys, if they are in one of states.
func (i *Inbox) requeueAll(ctx context.Context, keys, states []string, record recordChange) (n int64, err error) {
	err = i.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		requeued, err := store.Requeue(ctx, tx, keys, states)
		if err != nil {
			return err
		}
		n = int64(len(requeued))
		return record(ctx, tx, requeued)
	})
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	i.Wake()
	return n, nil
}
