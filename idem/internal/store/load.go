package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Row is an event.
type Row struct {
	Event
	State      string
	Attempts   int
	Crashes    int
	LastError  string
	ReceivedAt time.Time
	DueAt      time.Time // zero when no worker is to take it yet
	DoneAt     time.Time // zero when it is not
	ConflictAt time.Time // zero when no other body came
	Trace      string
}

// columns are the columns that scanRow reads of an event e and its body p.
const columns = `
select e.event, e.type, e.key, p.occurred_at, p.body, e.state, e.attempts, e.crashes, coalesce(e.last_error, ''), e.received_at,
	p.due_at, case e.state when 'done' then coalesce(e.done_at, e.received_at) end, e.conflict_at, coalesce(p.trace, '') `

// itsBody joins to each event e its body, if that is stored. They are looked up one by one:
// Postgres would read all bodies where it takes the tables for small.
const itsBody = `left join lateral (
	select occurred_at, body, due_at, trace from idem_payloads where event = e.event union all
	select occurred_at, body, null, null from idem_archive where event = e.event) p on true`

func scanRow(row pgx.CollectableRow) (r Row, err error) {
	var key string
	var occurred, due, done, conflict *time.Time
	err = row.Scan(&key, &r.Type, &r.Key, &occurred, &r.Payload, &r.State, &r.Attempts, &r.Crashes, &r.LastError, &r.ReceivedAt, &due, &done, &conflict, &r.Trace)
	r.setRowKey(key)
	r.OccurredAt, r.DueAt, r.DoneAt, r.ConflictAt = timeOrZero(occurred), timeOrZero(due), timeOrZero(done), timeOrZero(conflict)
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

// Get reads one event, in any state, with its body if that is stored. The error
// is pgx.ErrNoRows if there is none.
func Get(ctx context.Context, db DB, key string) (r Row, err error) {
	found, _ := db.Query(ctx, columns+`from idem_events e `+itsBody+` where e.event = $1`, key)
	return pgx.CollectExactlyOneRow(found, scanRow)
}

// GetAll reads events by their row keys, in that order, in any state, without their
// bodies. Those that are not there are left out.
func GetAll(ctx context.Context, db DB, keys []string) ([]Row, error) {
	const list = columns + `
from unnest($1::text[]) with ordinality as f (event, place) join idem_events e using (event)
left join lateral (select occurred_at, null::bytea as body, due_at, trace from idem_payloads where event = e.event) p on true
order by place`
	rows, _ := db.Query(ctx, list, keys)
	return pgx.CollectRows(rows, scanRow)
}

// WithID reads the events of an id, of every account of a source, in any state. It
// goes from one account to the next in the primary key, and looks the id up in each.
func WithID(ctx context.Context, db DB, source, id string) ([]Row, error) {
	const list = `
with recursive accounts as (
	select (select min(event) from idem_events where event >= $1 || '/' and event < $1 || '0') as first
	union all
	-- '0' follows '/': after all events of the account
	select (select min(e.event) from idem_events e
		where e.event >= substring(accounts.first from '^[^/]*/[^/]*') || '0' collate "C" and e.event < $1 || '0')
	from accounts where accounts.first is not null
)` + columns + `
from accounts
cross join lateral (select * from idem_events where event = substring(accounts.first from '^[^/]*/[^/]*/') || $2 offset 0) e
` + itsBody + `
order by e.event`
	rows, _ := db.Query(ctx, list, source, id)
	return pgx.CollectRows(rows, scanRow)
}

// OfKey reads the events of an entity in the order of arrival, in any of their
// states, with the bodies that are stored: the latest n. Accounts are those of
// scopes, or all if that is nil. Unless there is an index for it, see [CountByKey], it
// reads the whole of idem_events.
func OfKey(ctx context.Context, db DB, source string, scopes []string, key string, n int) ([]Row, error) {
	const list = columns + `
from (
	select * from idem_events
	where key = $1 and starts_with(event, $2) and ($3::text[] is null or split_part(event, '/', 2) = any ($3))
	order by received_at desc, event desc limit $4
) e ` + itsBody + `
order by e.received_at desc, e.event desc`
	rows, _ := db.Query(ctx, list, key, sourcePrefix(source), escaped(scopes), n)
	latest, err := pgx.CollectRows(rows, scanRow)
	slices.Reverse(latest)
	return latest, err
}

// CountByKey estimates how many events OfKey reads: 0 where idem_events has an index
// that begins with key.
func CountByKey(ctx context.Context, db DB) (n int64, err error) {
	const count = `
select case when exists (
	select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
	where i.indrelid = 'idem_events'::regclass and i.indisvalid and i.indpred is null and a.attname = 'key')
then 0 else (
	select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint from pg_class c
	where c.oid = 'idem_events'::regclass and c.relkind <> 'p' or c.oid in (select relid from pg_partition_tree('idem_events') where isleaf)) end`
	err = db.QueryRow(ctx, count).Scan(&n)
	return n, err
}
