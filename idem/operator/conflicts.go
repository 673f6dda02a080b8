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

// Conflicts lists up to n of the events that were delivered again with another body, the
// latest first, until Prune forgets them, and counts all of them; n is 1 or more. Only one of the two was processed, the
// first unless that had failed: an id was used twice, or two accounts (sandbox
// and production, say) deliver to one address without a Scope each. See
// [Operator.Rescope] before you give them one.
//
// Bodies are compared byte for byte, by a short hash. A provider that formats
// the same event in another way is listed, too.
func (o *Operator) Conflicts(ctx context.Context, n int) (latest []Conflict, all int64, err error) {
	if n < 1 {
		return nil, 0, fmt.Errorf("operator: listing conflicts: n is %d: give 1 or more", n)
	}
	rows, err := timed(ctx, func(ctx context.Context) (rows []store.Conflict, err error) {
		rows, all, err = store.ListConflicts(ctx, o.Pool(), o.SourceName(), n)
		return rows, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("operator: listing conflicts: %w", store.Explain(err))
	}
	latest = make([]Conflict, len(rows))
	for k, r := range rows {
		latest[k] = Conflict{Event: idem.Event(r.Event), State: idem.State(r.State), At: r.At}
	}
	return latest, all, nil
}
