package store

import (
	"context"
)

// Requeue makes events pending and due, those that are in one of states and not
// being processed, each at its place in its lane. It returns how many.
func Requeue(ctx context.Context, db DB, keys, states []string) (n int64, err error) {
	const requeue = `
with chosen as (
	select event from idem_events where event = any ($1) and state = any ($2) order by event for update skip locked
), again as (
	update idem_events e set state = 'pending', attempts = 0, crashes = 0, claimed_until = null from chosen
	where e.event = chosen.event
	returning e.event, e.key
), bodies as (
	update idem_payloads p set due_at = now(), held = false, lane = ` + rowLane + ` from again e where p.event = e.event
)
select count(*) from again`
	err = db.QueryRow(ctx, requeue, keys, states).Scan(&n)
	return n, err
}
