package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Arrival is an event without its body.
type Arrival struct {
	Event      Event
	State      string
	ReceivedAt time.Time
}

// OfKeys reads the events of entities that were stored at since or later, in any of
// their states. There is no index for it: one call reads the whole of idem_events,
// however many keys it has.
func OfKeys(ctx context.Context, db DB, source, scope string, keys []string, since time.Time) ([]Arrival, error) {
	const list = `
select event, type, key, state, received_at, occurred_at from idem_events
where received_at >= $3 and key = any($1) and starts_with(event, $2)
order by received_at, event`
	rows, _ := db.Query(ctx, list, keys, Event{Source: source, Scope: scope}.RowKey(), since)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Arrival, err error) {
		var key string
		var occurred *time.Time
		err = row.Scan(&key, &a.Event.Type, &a.Event.Key, &a.State, &a.ReceivedAt, &occurred)
		a.Event.OccurredAt = timeOrZero(occurred)
		a.Event.setRowKey(key)
		return a, err
	})
}

// LastArrival returns when the newest event of a source was stored; the time is
// zero if there is none. A canary is none. It reads the whole of idem_events.
func LastArrival(ctx context.Context, db DB, source string) (time.Time, error) {
	var newest *time.Time
	err := db.QueryRow(ctx, `select max(received_at) from idem_events where starts_with(event, $1) and event <> $2`, sourcePrefix(source), canaryKey(source)).Scan(&newest)
	return timeOrZero(newest), err
}
