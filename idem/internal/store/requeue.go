package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Requeue makes events pending and due, those that are in one of states and not
// being processed, each at its place in its lane. It returns their row keys.
func Requeue(ctx context.Context, db DB, keys, states []string) ([]string, error) {
	const requeue = `
with chosen as (
	select event from idem_events where event = any ($1) and state = any ($2) order by event for update skip locked
), again as (
	update idem_events e set state = 'pending', attempts = 0, crashes = 0, claimed_at = null, claimed_by = null from chosen
	where e.event = chosen.event
	returning e.event, e.key
), bodies as (
	update idem_payloads p set due_at = now(), held = false, lane = ` + rowLane + ` from again e where p.event = e.event
)
select event from again`
	rows, _ := db.Query(ctx, requeue, keys, states)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
