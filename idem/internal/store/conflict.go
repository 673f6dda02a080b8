package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Conflict is an event that was delivered with two bodies.
type Conflict struct {
	Event // without OccurredAt and Payload
	State string
	At    time.Time
}

// ListConflicts lists the n events of a source that were last delivered with another
// body than the first one, the newest first, and counts all.
func ListConflicts(ctx context.Context, db DB, source string, n int) (latest []Conflict, all int64, err error) {
	const list = `
select event, type, key, state, conflict_at, count(*) over () from idem_events
where conflict_at is not null and starts_with(event, $1) order by conflict_at desc, event limit $2`
	rows, _ := db.Query(ctx, list, sourcePrefix(source), n)
	latest, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Conflict, err error) {
		var key string
		err = row.Scan(&key, &c.Type, &c.Key, &c.State, &c.At, &all)
		c.setRowKey(key)
		return c, err
	})
	return latest, all, err
}
