package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Conflict is an event that was delivered again with another body.
type Conflict struct {
	idem.Event            // its OccurredAt and Payload are empty
	State      idem.State // of the first body
	At         time.Time  // when another body first came
}

// Conflicts lists the events that were delivered again with another body, the
// latest first, until Prune forgets them. Only one of the two was processed, the
// first unless that had failed: an id was used twice, or two accounts (sandbox
// and production, say) deliver to one address without a Scope each. See
// [Operator.Rescope] before you give them one.
//
// Bodies are compared byte for byte, by a short hash. A provider that formats
// the same event in another way is listed, too.
func (o *Operator) Conflicts(ctx context.Context) ([]Conflict, error) {
	rows, err := store.ListConflicts(ctx, o.Pool(), o.SourceName())
	if err != nil {
		return nil, fmt.Errorf("operator: listing conflicts: %w", store.Explain(err))
	}
	all := make([]Conflict, len(rows))
	for n, r := range rows {
		all[n] = Conflict{Event: idem.Event(r.Event), State: idem.State(r.State), At: r.At}
	}
	return all, nil
}
