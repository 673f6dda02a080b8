package store

import (
	"context"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// Filter chooses events of a source that are not done. A nil list is no
// condition; an empty one chooses nothing.
type Filter struct {
	Source string
	States []string
	Scopes []string
	Types  []string
	Keys   []string
	IDs    []string
}

// Find lists the row keys of the events that f chooses, in the order of arrival.
func Find(ctx context.Context, db DB, f Filter) ([]string, error) {
	const find = `
select e.event from idem_payloads p join idem_events e using (event)
where p.source = $1 and e.state = any ($2)
  and ($3::text[] is null or split_part(e.event, '/', 2) = any ($3))
  and ($4::text[] is null or e.type = any ($4))
  and ($5::text[] is null or e.key = any ($5))
  and ($6::text[] is null or substring(e.event from '^[^/]*/[^/]*/(.*)$') = any ($6))
order by e.received_at, e.event`
	var scopes []string
	if f.Scopes != nil {
		scopes = make([]string, len(f.Scopes))
		for i, s := range f.Scopes {
			scopes[i] = url.PathEscape(s)
		}
	}
	rows, err := db.Query(ctx, find, f.Source, f.States, scopes, f.Types, f.Keys, f.IDs)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Row is an event that is not done.
type Row struct {
	Event
	State      string
	Attempts   int
	Crashes    int
	LastError  string
	ReceivedAt time.Time
	DueAt      time.Time // zero when no worker is to take it yet
}

// Load reads events by their row keys, in that order; those that are done
// meanwhile are not among them.
func Load(ctx context.Context, db DB, keys []string) ([]Row, error) {
	const load = `
select e.event, e.type, e.key, p.occurred_at, p.body, e.state, e.attempts, e.crashes, coalesce(e.last_error, ''), e.received_at, p.due_at
from unnest($1::text[]) with ordinality as f (event, place) join idem_events e using (event) join idem_payloads p using (event)
order by place`
	rows, err := db.Query(ctx, load, keys)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Row, err error) {
		var key string
		var occurred, due *time.Time
		err = row.Scan(&key, &r.Type, &r.Key, &occurred, &r.Payload, &r.State, &r.Attempts, &r.Crashes, &r.LastError, &r.ReceivedAt, &due)
		r.setRowKey(key)
		r.OccurredAt, r.DueAt = timeOrZero(occurred), timeOrZero(due)
		return r, err
	})
}
