package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Stats counts the source's events that are not done.
type Stats struct {
	Pending   Backlog // stored by an inbox; its workers are next
	Retrying  Backlog // failed; the provider delivers them again
	Unhandled Backlog // no handler when they came
	Parked    Backlog // do not decode, or failed too often; kept until they are replayed, requeued or discarded

	BlockedKeys int64 // entities with events that wait for an earlier one; see operator.Operator.Blocked
}

// Backlog is the events in one state.
type Backlog struct {
	Events int64
	Oldest time.Duration // since the oldest arrived, by the database's clock; 0 when there is none
}

// Stats counts the events that are not done. It reads no others: its cost does not
// depend on how many are done. Alert on Parked, and on Pending or Retrying that grow
// old.
func (c *Common) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	rows, err := timed(ctx, func(ctx context.Context) ([]store.Backlog, error) {
		return store.CountOpen(ctx, c.pool, c.source.Name())
	})
	if err != nil {
		return s, fmt.Errorf("idem: counting events: %w", explain(err))
	}
	backlogs := map[string]*Backlog{
		store.Pending: &s.Pending, store.Retrying: &s.Retrying, store.Unhandled: &s.Unhandled, store.Parked: &s.Parked,
	}
	for _, row := range rows {
		if b := backlogs[row.State]; b != nil {
			*b = Backlog{row.Events, row.Oldest}
		}
	}
	s.BlockedKeys, err = timed(ctx, func(ctx context.Context) (int64, error) { return store.CountBlocked(ctx, c.pool, c.source.Name()) })
	if err != nil {
		return s, fmt.Errorf("idem: counting blocked entities: %w", explain(err))
	}
	return s, nil
}
