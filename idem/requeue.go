package idem

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

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
