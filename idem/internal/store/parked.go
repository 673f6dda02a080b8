package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Acknowledged is the action in the audit trail by which a person takes note of parked events.
const Acknowledged = "acknowledge"

// ParkedEvents counts the parked events that wait for no other, and were not acknowledged since
// they last failed.
type ParkedEvents struct {
	N        int64  // how many
	ID, Type string // of the one that came first
}

// FindParked looks for the parked events of a source that failed themselves, and that are
// not acknowledged, or have failed again since.
func FindParked(ctx context.Context, db DB, source string) (a ParkedEvents, err error) {
	const find = `
with acknowledged as materialized (
	select event, max(a.at) as at from idem_audit a cross join unnest(a.events) as u (event)
	where a.source = $1 and a.action = $2 and a.ended_at is not null group by event
)
select count(*) over (), substring(e.event from '^[^/]*/[^/]*/(.*)$'), e.type
from idem_payloads p ` + openEvent + ` left join acknowledged k on k.event = p.event
where p.source = $1 and p.due_at is null and not p.held and e.state = 'parked'
  and (k.at is null or k.at < (p.failures -> -1 ->> 'at')::timestamptz)
order by p.received_at, p.event limit 1`
	err = db.QueryRow(ctx, find, source, Acknowledged).Scan(&a.N, &a.ID, &a.Type)
	if errors.Is(err, pgx.ErrNoRows) {
		return ParkedEvents{}, nil
	}
	return a, err
}

// CountSetAside returns how many bodies of a source are set aside, most at most.
func CountSetAside(ctx context.Context, db DB, source string, most int64) (n int64, err error) {
	const count = `
select count(*) from (select from idem_payloads p ` + openEvent + `
where p.source = $1 and p.due_at is null and e.state = 'parked' and e.type = $2 limit $3) aside`
	err = db.QueryRow(ctx, count, source, SetAsideType, most).Scan(&n)
	return n, err
}

// ParkedByFailure returns those of the events with these keys that [FindParked] would count, were they
// not acknowledged.
func ParkedByFailure(ctx context.Context, db DB, keys []string) ([]string, error) {
	const choose = `
select p.event from unnest($1::text[]) as k (event) join idem_payloads p using (event) ` + openEvent + `
where not p.held and e.state = 'parked' order by p.event`
	rows, _ := db.Query(ctx, choose, keys)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
