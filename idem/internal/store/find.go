package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Filter chooses events of a source that are not done. A nil list is no condition; an empty list chooses
// nothing.
type Filter struct {
	Source string
	States []string
	Scopes []string
	Types  []string
	Keys   []string
	IDs    []string
	Events []string // row keys
	Failed bool     // only events with a failed attempt

	From, Until time.Time // of arrival: at From or later, and before Until; zero is no condition
}

func (f Filter) args() []any {
	return []any{f.Source, f.States, escaped(f.Scopes), f.Types, f.Keys, f.IDs, nullTime(f.From), nullTime(f.Until), f.Events, f.Failed}
}

// chosen is the condition of a filter; args are its arguments. Conditions on the payload's row are checked
// before the event is looked up.
const chosen = `
from idem_payloads p ` + openEvent + `
where p.source = $1 and e.state = any ($2)
  and ($3::text[] is null or split_part(p.event, '/', 2) = any ($3))
  and ($4::text[] is null or e.type = any ($4))
  and ($5::text[] is null or e.key = any ($5))
  and ($6::text[] is null or substring(p.event from '^[^/]*/[^/]*/(.*)$') = any ($6))
  and ($7::timestamptz is null or e.received_at >= $7) and ($8::timestamptz is null or e.received_at < $8)
  and ($9::text[] is null or p.event = any ($9))
  and (not $10 or ` + hasFailed + `)`

// openEvent joins to a payload p its event. The events are looked up one by one: the planner would rather
// read all events, ten million done ones for the sake of a few that are not.
const openEvent = `cross join lateral (select * from idem_events where event = p.event offset 0) e`

// Find lists the row keys of the events that f chooses, in the order of lanes: by the
// provider's time, and then by arrival.
func Find(ctx context.Context, db DB, f Filter) ([]string, error) {
	rows, _ := db.Query(ctx, `select e.event `+chosen+` order by `+order, f.args()...)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Count counts the events that f chooses.
func Count(ctx context.Context, db DB, f Filter) (n int64, err error) {
	err = db.QueryRow(ctx, `select count(*) `+chosen, f.args()...).Scan(&n)
	return n, err
}

// FindPage lists the n newest events that f chooses and that arrived before a place; a zero place is after
// all events. It returns their row keys and the place of the last.
func FindPage(ctx context.Context, db DB, f Filter, before Place, n int) (keys []string, last Place, err error) {
	const page = chosen + ` and ($11::timestamptz is null or (p.received_at, p.event) < ($11, $12))
order by p.received_at desc, p.event desc limit $13`
	rows, _ := db.Query(ctx, `select p.event, p.received_at `+page, append(f.args(), nullTime(before.At), before.Event, n)...)
	_, err = pgx.ForEachRow(rows, []any{&last.Event, &last.At}, func() error { keys = append(keys, last.Event); return nil })
	return keys, last, err
}

// Place is the place of an event in the order of arrival.
type Place struct {
	At    time.Time
	Event string // its row key
}

// Row is an event.
type Row struct {
	Event
	State      string
	Attempts   int
	Crashes    int
	LastError  string
	ReceivedAt time.Time
	DueAt      time.Time // zero if workers must not claim it yet
	DoneAt     time.Time // zero if it is not done
	ConflictAt time.Time // zero if no other body came
	Trace      string

	AcknowledgedAt time.Time // zero if nobody takes care of it
}

// columns are the columns that scanRow reads of an event e and its body p.
const columns = `
select e.event, e.type, e.key, p.occurred_at, p.body, e.state, e.attempts, e.crashes, coalesce(e.last_error, ''), e.received_at,
	p.due_at, case e.state when 'done' then coalesce(e.done_at, e.received_at) end, e.conflict_at, coalesce(p.trace, ''),
	case when ` + isAcknowledged + ` then p.acknowledged_at end `

// itsBody joins to each event e its body, if the body is stored. The bodies are looked up one by one:
// Postgres would read all bodies if it took the tables for small.
const itsBody = `left join lateral (
	select occurred_at, body, due_at, trace, failures, acknowledged_at from idem_payloads where event = e.event union all
	select occurred_at, body, null, null, null, null from idem_archive where event = e.event) p on true`

func scanRow(row pgx.CollectableRow) (r Row, err error) {
	var key string
	err = row.Scan(&key, &r.Type, &r.Key, orZero(&r.OccurredAt), &r.Payload, &r.State, &r.Attempts, &r.Crashes, &r.LastError, &r.ReceivedAt,
		orZero(&r.DueAt), orZero(&r.DoneAt), orZero(&r.ConflictAt), &r.Trace, orZero(&r.AcknowledgedAt))
	r.setRowKey(key)
	return r, err
}

// Load reads events by their row keys, in that order. Events that are done by now are left out.
func Load(ctx context.Context, db DB, keys []string) ([]Row, error) {
	const load = columns + `
from unnest($1::text[]) with ordinality as f (event, place) join idem_events e using (event) join idem_payloads p using (event)
order by place`
	rows, _ := db.Query(ctx, load, keys)
	return pgx.CollectRows(rows, scanRow)
}

// Get reads one event, in any state, with its body if the body is stored. The error is pgx.ErrNoRows if there
// is none.
func Get(ctx context.Context, db DB, key string) (r Row, err error) {
	found, _ := db.Query(ctx, columns+`from idem_events e `+itsBody+` where e.event = $1`, key)
	return pgx.CollectExactlyOneRow(found, scanRow)
}

// GetAll reads events by their row keys, in that order, in any state, without their bodies. Events that are
// not stored are left out.
func GetAll(ctx context.Context, db DB, keys []string) ([]Row, error) {
	const list = columns + `
from unnest($1::text[]) with ordinality as f (event, place) join idem_events e using (event)
left join lateral (
	select occurred_at, null::bytea as body, due_at, trace, failures, acknowledged_at from idem_payloads where event = e.event) p on true
order by place`
	rows, _ := db.Query(ctx, list, keys)
	return pgx.CollectRows(rows, scanRow)
}

// WithID reads the events with an id, of every account of a source, in any state. It goes from account to
// account in the primary key, and looks the id up in each.
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

// OfKey reads the latest n events of an entity, in the order of arrival, in any state, with the bodies that
// are stored. scopes are the accounts; nil is all. Without an index for it, see [CountByKey], OfKey reads the
// whole of idem_events.
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

// CountByKey estimates the number of events that OfKey reads: 0 if idem_events has an index that begins with
// key.
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

// SilentSince returns the time at which the newest event of a source, a canary's apart, was stored, or the zero
// time if one was stored within d. It reads idem_events up to an event that was, or all of it.
func SilentSince(ctx context.Context, db DB, source string, d time.Duration) (newest time.Time, err error) {
	const silent = `
select (select max(received_at) from idem_events where starts_with(event, $1) and event <> $2)
where not exists (select from idem_events where starts_with(event, $1) and event <> $2 and received_at > now() - $3::interval)`
	err = db.QueryRow(ctx, silent, sourcePrefix(source), canaryKey(source), d).Scan(orZero(&newest))
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return newest, err
}

// Whereabouts is an event with the reason why it is not done.
type Whereabouts struct {
	Row
	Failures     []Failure // the last ones, the oldest first
	First        string    // the row key of the first event of its lane; "" if the event is in no lane
	Behind       int64     // events of its lane that come after it
	Claim        Claimed
	Acknowledged Action // by which a person takes care of it; zero if nobody does, or the trail does not go back so far
	Now          time.Time
}

// FindWhereabouts reads an event and its place in its lane. Call it in a transaction that sees one state of
// the tables. The error is pgx.ErrNoRows if there is no such event.
func FindWhereabouts(ctx context.Context, tx DB, key string) (w Whereabouts, err error) {
	const place = `
select own.failures, coalesce((select p.event from idem_payloads p where p.lane = own.lane order by ` + order + ` limit 1), ''),
	(select count(*) from idem_payloads p where p.lane = own.lane
		and (` + order + `) > (coalesce(own.occurred_at, own.received_at), own.received_at, own.event)),
	now()
from idem_payloads own where own.event = $1`
	if w.Row, err = Get(ctx, tx, key); err != nil {
		return w, err
	}
	if w.Claim, err = FindClaim(ctx, tx, key); err != nil {
		return w, err
	}
	err = tx.QueryRow(ctx, place, key).Scan(&w.Failures, &w.First, &w.Behind, &w.Now)
	if errors.Is(err, pgx.ErrNoRows) { // the event is done
		err = tx.QueryRow(ctx, `select now()`).Scan(&w.Now)
	}
	if err == nil && !w.AcknowledgedAt.IsZero() {
		w.Acknowledged, err = acknowledging(ctx, tx, key)
	}
	return w, err
}

// Conflict is an event that was delivered with two bodies.
type Conflict struct {
	Event // without OccurredAt and Payload
	State string
	At    time.Time
}

// ListConflicts lists the n events of a source with the latest conflict, a delivery with another body than
// the first, the newest first. It counts all events with a conflict.
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
