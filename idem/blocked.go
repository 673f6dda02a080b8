package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Blocked is an entity whose events wait for the first one of them.
type Blocked struct {
	Scope, Key string
	ID         string        // of the first event
	Type       string        // of the first event
	State      State         // of the first event: StateParked, or StatePending until its next attempt; "" when its row was deleted by hand
	LastError  string        // why it failed
	Age        time.Duration // since it arrived, by the database's clock
	DueAt      time.Time     // of its next attempt; zero when there will be none
	Waiting    int64         // events behind it
}

// Blocked lists the entities whose events wait, oldest first: behind a parked
// event, until you use [Common.Replay], [Inbox.Requeue] or [Common.Discard] on
// it, or behind one that failed, until its next attempt.
func (i *Inbox) Blocked(ctx context.Context) ([]Blocked, error) { return i.blocked(ctx) }

func (c *Common) blocked(ctx context.Context) ([]Blocked, error) {
	rows, err := store.ListBlocked(ctx, c.pool, c.source.Name())
	if err != nil {
		return nil, fmt.Errorf("idem: listing blocked keys: %w", explain(err))
	}
	all := make([]Blocked, len(rows))
	for n, b := range rows {
		all[n] = Blocked{
			Scope: b.Scope, Key: b.Key, ID: b.ID, Type: b.Type, State: State(b.State),
			LastError: b.LastError, Age: b.Age, DueAt: b.DueAt, Waiting: b.Waiting,
		}
	}
	return all, nil
}
