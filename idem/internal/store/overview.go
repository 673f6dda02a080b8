package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Failing is the events of a type that have failed, and are tried again by themselves.
type Failing struct {
	Type   string
	Events int64
}

// ListFailing lists the n types of a source with the most events that fail now, and counts the
// events of all types.
func ListFailing(ctx context.Context, db DB, source string, n int) (all []Failing, events int64, err error) {
	const list = `
select e.type, count(*), (sum(count(*)) over ())::bigint
from idem_payloads p ` + openEvent + `
where p.source = $1 and e.state in ('pending', 'retrying') and (e.attempts > 0 or e.crashes > 0 or p.failures is not null)
group by e.type order by 2 desc, 1 limit $2`
	rows, _ := db.Query(ctx, list, source, n)
	all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Failing, err error) {
		err = row.Scan(&f.Type, &f.Events, &events)
		return f, err
	})
	return all, events, err
}

// CountStanding counts the events of a source that wait behind a parked one, and their entities.
func CountStanding(ctx context.Context, db DB, source string) (events, lanes int64, err error) {
	const count = `
select coalesce(sum(h.waiting + h.held::int), 0)::bigint, count(*) ` + heads + ` where e.state = 'parked' and (h.waiting > 0 or h.held)`
	err = db.QueryRow(ctx, count, source).Scan(&events, &lanes)
	return events, lanes, err
}
