package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Row is an event that is not done.
type Row struct {
	Event
	State      string
	Attempts   int
	Crashes    int
	LastError  string
	ReceivedAt time.Time
	DueAt      time.Time // zero when no worker is to take it yet
	Trace      string
}

// columns are what scanRow reads of an event e and its body p.
const columns = `
select e.event, e.type, e.key, p.occurred_at, p.body, e.state, e.attempts, e.crashes, coalesce(e.last_error, ''), e.received_at,
	p.due_at, coalesce(p.trace, '') `

// anyEvent is events in every state, with their bodies if those are kept.
const anyEvent = columns + `
from idem_events e left join (
	select event, occurred_at, body, due_at, trace from idem_payloads union all
	select event, occurred_at, body, null, null from idem_archive) p using (event) `

func scanRow(row pgx.CollectableRow) (r Row, err error) {
	var key string
	var occurred, due *time.Time
	err = row.Scan(&key, &r.Type, &r.Key, &occurred, &r.Payload, &r.State, &r.Attempts, &r.Crashes, &r.LastError, &r.ReceivedAt, &due, &r.Trace)
	r.setRowKey(key)
	r.OccurredAt, r.DueAt = timeOrZero(occurred), timeOrZero(due)
	return r, err
}

// Load reads events by their row keys, in that order; those that are done
// meanwhile are not among them.
func Load(ctx context.Context, db DB, keys []string) ([]Row, error) {
	const load = columns + `
from unnest($1::text[]) with ordinality as f (event, place) join idem_events e using (event) join idem_payloads p using (event)
order by place`
	rows, _ := db.Query(ctx, load, keys)
	return pgx.CollectRows(rows, scanRow)
}

// Get reads one event, whatever its state, with its body if that is kept. The error
// is pgx.ErrNoRows if there is none.
func Get(ctx context.Context, db DB, key string) (r Row, err error) {
	found, _ := db.Query(ctx, anyEvent+`where e.event = $1`, key)
	return pgx.CollectExactlyOneRow(found, scanRow)
}

// OfKey reads the events of an entity in the order of arrival, whatever their
// states, those that are kept with their bodies, and n at most. There is no index
// for it: it reads the whole of idem_events.
func OfKey(ctx context.Context, db DB, source, scope, key string, n int) ([]Row, error) {
	const list = anyEvent + `
where e.key = $1 and starts_with(e.event, $2)
order by e.received_at, e.event limit $3`
	rows, _ := db.Query(ctx, list, key, Event{Source: source, Scope: scope}.RowKey(), n)
	return pgx.CollectRows(rows, scanRow)
}
