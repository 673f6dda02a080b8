package idem

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// page is how many events are read with their bodies at a time.
const page = 100

// List reads the events that f chooses, oldest first, with their payloads and
// why they are not done. They are those that were there at the start, as they
// are when their turn comes. It ends after the first error.
func (p *Processor) List(ctx context.Context, f Filter) iter.Seq2[StoredEvent, error] {
	return func(yield func(StoredEvent, error) bool) {
		found, err := p.find(ctx, p.pool, f)
		if err != nil {
			yield(StoredEvent{}, fmt.Errorf("idem: listing events: %w", explain(err)))
			return
		}
		for rows := range slices.Chunk(found, page) {
			events, err := load(ctx, p.pool, rows)
			if err != nil {
				yield(StoredEvent{}, fmt.Errorf("idem: listing events: %w", explain(err)))
				return
			}
			for _, s := range events {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}
