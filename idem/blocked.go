package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Blocked is a key whose events wait behind a failed one.
type Blocked struct {
	Scope, Key string
	ID         string        // of the failed event
	Type       string        // of the failed event
	LastError  string        // why it failed
	Age        time.Duration // since it arrived, by the database's clock
	Waiting    int64         // events behind it
}

// Blocked lists the keys whose events wait behind one that failed, oldest first:
// [Processor.Replay], [Inbox.Requeue] or [Processor.Discard] the failed event.
func (i *Inbox) Blocked(ctx context.Context) ([]Blocked, error) { return i.blocked(ctx) }

func (p *Processor) blocked(ctx context.Context) ([]Blocked, error) {
	const blocked = `
with heads as (
	select distinct on (b.queue) e.*, b.queue, coalesce(b.occurred_at, b.received_at) as at, b.received_at as arrived
	from idem_payloads b join idem_events e using (event)
	where b.queue is not null and starts_with(b.queue, $1) and e.state = 'parked'
	order by b.queue, at, arrived
)
select h.event, h.key, h.type, coalesce(h.last_error, ''), now() - h.received_at, waiting
from heads h cross join lateral (
	select count(*) as waiting from idem_payloads w join idem_events e using (event)
	where w.queue = h.queue and (coalesce(w.occurred_at, w.received_at), w.received_at) > (h.at, h.arrived) and e.state = 'pending') behind
where waiting > 0
order by h.received_at, h.event`
	rows, err := p.pool.Query(ctx, blocked, p.source.Name()+"/")
	if err != nil {
		return nil, fmt.Errorf("idem: listing blocked keys: %w", explain(err))
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocked, err error) {
		var event string
		err = row.Scan(&event, &b.Key, &b.Type, &b.LastError, &b.Age, &b.Waiting)
		_, b.Scope, b.ID = parseRowKey(event)
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("idem: listing blocked keys: %w", explain(err))
	}
	return all, nil
}
