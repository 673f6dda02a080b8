package idem

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Filter chooses stored events. The zero value means all of the source's events
// that are unhandled or failed; each field that is set narrows it.
type Filter struct {
	States []State  // StateUnhandled, StateFailed; others that are not done
	Scopes []string // accounts
	Types  []string // the provider's event names
	Keys   []string // the entities that events are about
	IDs    []string // the provider's event ids
}

// DB is what operations on stored events run in: a *pgxpool.Pool or *pgx.Conn,
// or a pgx.Tx, which makes them part of the caller's own work.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// open are the payloads of events that are not done, in the words of the two
// indexes that find them.
const open = `(not b.done and b.queue is null or b.queue is not null)`

// find lists the rows of the events that f chooses, in the order of arrival.
func (p *Processor) find(ctx context.Context, db DB, f Filter) ([]string, error) {
	const find = `
select e.event from idem_payloads b join idem_events e using (event)
where ` + open + ` and starts_with(b.event, $1) and e.state = any ($2)
  and ($3::text[] is null or split_part(e.event, '/', 2) = any ($3))
  and ($4::text[] is null or e.type = any ($4))
  and ($5::text[] is null or e.key = any ($5))
  and ($6::text[] is null or substring(e.event from '^[^/]*/[^/]*/(.*)$') = any ($6))
order by e.received_at, e.event`
	scopes := slices.Clone(f.Scopes) // none is not the same as all
	for n, s := range scopes {
		scopes[n] = url.PathEscape(s)
	}
	rows, err := db.Query(ctx, find, p.source.Name()+"/", f.states(), scopes, f.Types, f.Keys, f.IDs)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (f Filter) states() []string {
	if f.States == nil {
		return []string{string(StateUnhandled), string(StateParked)}
	}
	states := make([]string, 0, len(f.States))
	for _, s := range f.States {
		states = append(states, string(s))
	}
	return states
}

// StoredEvent is an event that is not done, as the database knows it.
type StoredEvent struct {
	Event

	State      State
	Attempts   int       // that failed
	Crashes    int       // processes that died while they worked on it
	LastError  string    // why the last attempt failed; "" if none has
	ReceivedAt time.Time // when it was stored
	DueAt      time.Time // pending: not to be worked on before; zero is now
}

// load reads stored events; those that are done meanwhile are not among them.
func load(ctx context.Context, db DB, found []string) ([]StoredEvent, error) {
	const load = `
select e.event, e.type, e.key, b.occurred_at, b.body, e.state, e.attempts, coalesce(e.crashes, 0),
	coalesce(e.last_error, ''), e.received_at, e.due_at
from unnest($1::text[]) with ordinality as f (event, place) join idem_events e using (event)
	cross join lateral ` + payloadOf + ` p join idem_payloads b on b.ctid = p.ctid
where not b.done order by place`
	rows, err := db.Query(ctx, load, found)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s StoredEvent, err error) {
		var key string
		var occurred, due *time.Time
		err = row.Scan(&key, &s.Type, &s.Key, &occurred, &s.Payload, &s.State, &s.Attempts, &s.Crashes,
			&s.LastError, &s.ReceivedAt, &due)
		s.Source, s.Scope, s.ID = parseRowKey(key)
		s.OccurredAt, s.DueAt = timeOrZero(occurred), timeOrZero(due)
		return s, err
	})
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
