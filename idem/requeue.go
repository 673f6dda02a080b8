package idem

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Requeue has the workers process the events that f chooses again, as if they had
// just arrived, each in its place in the order of its entity. Events that are
// being processed are left. It returns how many it requeued.
//
// It does not ask whether workers run, here or elsewhere, now or later: see
// [Operator.Requeue], which does.
func (i *Inbox) Requeue(ctx context.Context, f Filter) (int64, error) {
	keys, err := i.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	return i.requeueAll(ctx, keys, f.states())
}

// requeueAll makes events pending by their row keys, if they are in one of states.
func (i *Inbox) requeueAll(ctx context.Context, keys, states []string) (n int64, err error) {
	err = retryDeadlocks(ctx, func() (err error) {
		n, err = store.Requeue(ctx, i.pool, keys, states)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	i.wakeWorkers()
	return n, nil
}
