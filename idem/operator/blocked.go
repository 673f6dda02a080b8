package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Blocked is an entity with later events that wait for its first one that is not done.
type Blocked struct {
	Scope, Key string
	ID         string        // of the first event
	Type       string        // of the first event
	State      idem.State    // of the first event: parked, or pending until its next attempt; "" when its row was deleted by hand
	LastError  string        // why it failed
	Age        time.Duration // since the first event arrived, by the database's clock
	DueAt      time.Time     // of its next attempt; zero when there will be none
	Waiting    int64         // events behind it
}

// Blocked lists up to n of the entities with events that wait for an earlier one, the oldest first, and
// counts all of them; n is 1 or more. They wait behind a parked event until [Operator.Replay], [Operator.Requeue] or
// [Operator.Discard] is used on it, and behind one that failed until its next
// attempt.
func (o *Operator) Blocked(ctx context.Context, n int) (oldest []Blocked, all int64, err error) {
	if n < 1 {
		return nil, 0, fmt.Errorf("operator: listing blocked entities: n is %d: give 1 or more", n)
	}
	var sum store.BlockedSum
	rows, err := timed(ctx, func(ctx context.Context) (rows []store.Blocked, err error) {
		rows, sum, err = store.ListBlocked(ctx, o.Pool(), o.SourceName(), n)
		return rows, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("operator: listing blocked entities: %w", store.Explain(err))
	}
	oldest = make([]Blocked, len(rows))
	for k, b := range rows {
		oldest[k] = Blocked{
			Scope: b.Scope, Key: b.Key, ID: b.ID, Type: b.Type, State: idem.State(b.State),
			LastError: b.LastError, Age: b.Age, DueAt: b.DueAt, Waiting: b.Waiting,
		}
	}
	return oldest, sum.Entities, nil
}
