package idem

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// withOvertaken calls run, and adds to its sum the events that it did behind later ones.
func (c *Common) withOvertaken(
	ctx context.Context, ran func(Replayed, Event, error), run func(func(Replayed, Event, error)) (Replayed, error),
) (Replayed, error) {
	var done []string
	before := 0
	sum, err := run(func(sum Replayed, e Event, failure error) {
		if sum.Done > before {
			before = sum.Done
			done = append(done, e.row().RowKey())
		}
		ran(sum, e, failure)
	})
	if err != nil || len(done) == 0 {
		return sum, err
	}
	found, err := timed(ctx, func(ctx context.Context) ([]store.Overtaken, error) { return store.FindOvertaken(ctx, c.pool, done) })
	if err != nil {
		return sum, fmt.Errorf("idem: all have run, and whether later events were done before them is not known: %w", explain(err))
	}
	for _, o := range found {
		sum.Overtaken = append(sum.Overtaken, Overtaken{Event: Event(o.Event), By: Event(o.By), More: o.More})
	}
	return sum, nil
}
