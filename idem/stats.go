package idem

import (
	"context"
	"fmt"
	"time"
)

// Stats counts the source's events that are not done.
type Stats struct {
	Retrying  Backlog // failed; the provider delivers them again
	Unhandled Backlog // no handler when they came
	Failed    Backlog // parked: nothing happens to them until they are replayed
}

// Backlog is the events in one state.
type Backlog struct {
	Events int64
	Oldest time.Duration // since the oldest arrived, by the database's clock; 0 when there is none
}

// Stats reads only what is not done: it is cheap however many events are. Alert on Failed, and on Retrying that grows
// old.
func (p *Processor) Stats(ctx context.Context) (Stats, error) {
	const count = `
select e.state, count(*), now() - min(e.received_at)
from idem_payloads b join idem_events e using (event)
where not b.done and starts_with(b.event, $1) group by e.state`
	var s Stats
	rows, err := p.pool.Query(ctx, count, p.source.Name()+"/")
	if err != nil {
		return s, fmt.Errorf("idem: counting events: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state State
		var b Backlog
		if err := rows.Scan(&state, &b.Events, &b.Oldest); err != nil {
			return s, fmt.Errorf("idem: counting events: %w", err)
		}
		switch state {
		case StateRetrying:
			s.Retrying = b
		case StateUnhandled:
			s.Unhandled = b
		case StateFailed:
			s.Failed = b
		}
	}
	if err := rows.Err(); err != nil {
		return s, fmt.Errorf("idem: counting events: %w", err)
	}
	return s, nil
}
