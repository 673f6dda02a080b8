package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Backlog is the events of a source in one state.
type Backlog struct {
	State  string
	Events int64
	Oldest time.Duration
}

// CountOpen counts the events of a source that are not done, by state.
func CountOpen(ctx context.Context, db DB, source string) ([]Backlog, error) {
	const count = `
select e.state, count(*), now() - min(e.received_at)
from idem_payloads p ` + openEvent + ` where p.source = $1 group by e.state`
	rows, _ := db.Query(ctx, count, source)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Backlog, err error) {
		err = row.Scan(&b.State, &b.Events, &b.Oldest)
		return b, err
	})
}
