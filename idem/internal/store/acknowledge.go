package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// isAcknowledged is the condition that a person takes care of an event e with the body p: since its last
// failure if it is parked, and since whenever if it is tried again by itself.
const isAcknowledged = `(p.acknowledged_at is not null
	and not (e.state = 'parked' and p.acknowledged_at < coalesce((p.failures -> -1 ->> 'at')::timestamptz, p.acknowledged_at)))`

// hasFailed is the condition that an attempt at an event e with the body p has failed, also if somebody has had it
// tried again since.
const hasFailed = `(` + isFailing + ` or p.failures is not null)`

// Acknowledge sets or takes back that a person takes care of events: of those that are parked by a failure of
// their own, or have failed and are tried again by themselves. It leaves those that are being processed, and
// returns the row keys of the others.
func Acknowledge(ctx context.Context, tx pgx.Tx, keys []string, yes bool) ([]string, error) {
	const acknowledge = `
with chosen as (
	select p.event from idem_payloads p ` + openEvent + `
	where p.event = any ($1) and ($2 or ` + isAcknowledged + `)
	  and (e.state = 'parked' or e.state = 'pending' and ` + hasFailed + `)
	order by p.event for update of p skip locked
)
update idem_payloads p set acknowledged_at = case when $2 then now() end from chosen where p.event = chosen.event
returning p.event, ` + onDisk
	rows, _ := tx.Query(ctx, acknowledge, keys, yes)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (key string, err error) {
		err = row.Scan(&key, nil)
		return key, err
	})
}
