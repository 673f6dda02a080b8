package idem

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Requeue has the workers process the events that f chooses again, as if they had
// just arrived, each in its place in the order of its key. Events that are being
// processed are left. It returns how many it requeued.
func (i *Inbox) Requeue(ctx context.Context, f Filter) (int64, error) {
	keys, err := i.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	n, err := store.Requeue(ctx, i.pool, keys, f.states())
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	i.wakeWorkers()
	return n, nil
}
