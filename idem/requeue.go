package idem

import (
	"context"
	"fmt"
)

// Requeue has the workers work again on the events that f chooses, as if they
// had just arrived, each in its place in the order of its key. It returns how
// many. In a transaction of yours, db, they begin when that is committed.
func (i *Inbox) Requeue(ctx context.Context, db DB, f Filter) (int64, error) {
	const requeue = `
with again as (
	update idem_events set state = 'pending', attempts = 0, crashes = null, due_at = null
	where event = any ($1) and state = any ($2)
	returning event, key
), ended as (
	delete from idem_claims c using again where c.event = again.event
), place as (
	update idem_payloads b set received_at = coalesce(b.received_at, now()), queue = ` + queueOfRow + ` from again e
	cross join lateral ` + payloadOf + ` p where b.ctid = p.ctid
)
select count(*), pg_notify('idem_inbox', '')::text from again`
	found, err := i.find(ctx, db, f)
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	var n int64
	if err := db.QueryRow(ctx, requeue, found, f.states()).Scan(&n, nil); err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", err)
	}
	return n, nil
}
