package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Arrivals returns the events of entities of an account that were stored at since
// or later, in the order of arrival, in any state, without their bodies.
// [Common.Prune] forgets events: an event older than Retention that is missing may
// have been processed.
//
// It is slow: without an index for it, each call reads the events of all entities,
// ten million in a second or two. Ask for hundreds of keys in one call.
func (c *Common) Arrivals(ctx context.Context, scope string, keys []string, since time.Time) ([]StoredEvent, error) {
	rows, err := timed(ctx, func(ctx context.Context) ([]store.Arrival, error) {
		return store.OfKeys(ctx, c.pool, c.source.Name(), scope, keys, since)
	})
	if err != nil {
		return nil, fmt.Errorf("idem: listing arrivals: %w", explain(err))
	}
	all := make([]StoredEvent, len(rows))
	for n, r := range rows {
		all[n] = StoredEvent{Event: Event(r.Event), State: State(r.State), ReceivedAt: r.ReceivedAt}
	}
	return all, nil
}

// LastArrival returns when the newest event of the source was stored, of all
// accounts, by the database's clock. The time is zero if no event is stored. It
// reads all events, as [Common.Arrivals] does. Both end with an error after five minutes.
func (c *Common) LastArrival(ctx context.Context) (time.Time, error) {
	at, err := timed(ctx, func(ctx context.Context) (time.Time, error) { return store.LastArrival(ctx, c.pool, c.source.Name()) })
	if err != nil {
		return time.Time{}, fmt.Errorf("idem: reading the last arrival: %w", explain(err))
	}
	return at, nil
}
