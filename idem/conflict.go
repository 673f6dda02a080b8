package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Conflict is an event that was delivered again with another body.
type Conflict struct {
	Event           // its OccurredAt and Payload are empty
	State State     // of the first body
	At    time.Time // when another body first came
}

// Conflicts lists the events that were delivered again with another body, the
// latest first, until Prune forgets them. Only one of the two was processed, the
// first unless that had failed: an id was used twice, or two accounts (sandbox
// and production, say) deliver to one address without a Scope each. See
// operator.Operator.Rescope before you give them one.
//
// Bodies are compared byte for byte, by a short hash. A provider that formats
// the same event in another way is listed, too.
func (c *Common) Conflicts(ctx context.Context) ([]Conflict, error) {
	rows, err := store.ListConflicts(ctx, c.pool, c.source.Name())
	if err != nil {
		return nil, fmt.Errorf("idem: listing conflicts: %w", explain(err))
	}
	all := make([]Conflict, len(rows))
	for n, r := range rows {
		all[n] = Conflict{Event: Event(r.Event), State: State(r.State), At: r.At}
	}
	return all, nil
}
