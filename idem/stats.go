package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Stats counts the source's events that are not done.
type Stats struct {
	Pending   Backlog // stored by an inbox; workers are next
	Retrying  Backlog // failed; the provider delivers them again
	Unhandled Backlog // no handler when they came
	Parked    Backlog // parked: nothing happens to them until they are replayed

	BlockedKeys int64 // keys whose events wait behind a failed one; see [Inbox.Blocked]
}

// Backlog is the events in one state.
type Backlog struct {
	Events int64
	Oldest time.Duration // since the oldest arrived, by the database's clock; 0 when there is none
}

// Stats reads only what is not done: it is cheap however many events are. Alert
// on Failed, and on Pending or Retrying that grow old.
func (p *Processor) Stats(ctx context.Context) (Stats, error) {
	const count = `
select e.state, count(*), now() - min(e.received_at)
from idem_payloads b join idem_events e using (event)
where ` + open + ` and starts_with(b.event, $1) group by e.state`
	var s Stats
	states := map[State]*Backlog{
		StatePending: &s.Pending, StateRetrying: &s.Retrying, StateUnhandled: &s.Unhandled, StateParked: &s.Parked,
	}
	rows, err := p.pool.Query(ctx, count, p.source.Name()+"/")
	if err != nil {
		return s, fmt.Errorf("idem: counting events: %w", explain(err))
	}
	var state State
	var b Backlog
	_, err = pgx.ForEachRow(rows, []any{&state, &b.Events, &b.Oldest}, func() error {
		if backlog := states[state]; backlog != nil {
			*backlog = b
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("idem: counting events: %w", explain(err))
	}
	blocked, err := p.blocked(ctx)
	s.BlockedKeys = int64(len(blocked))
	return s, err
}
