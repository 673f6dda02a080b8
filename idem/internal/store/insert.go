package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Incoming is an event that is to be stored for workers.
type Incoming struct {
	Event
	Trace string    // names the trace of its delivery; "" for none
	At    time.Time // when a first try of the event began, by the database's clock, which is its place in its lane; zero is now
}

// Inserted is the result for an event that was to be stored.
type Inserted struct {
	New   bool
	State string // of the event that was stored before; "" if only [Look] can tell
}

// InsertPending stores new events for workers, all or none, and returns the result
// of each. Of two with the same row key the first is stored; of the other one only [Look] can tell the state.
//
// The rows are inserted in the order of their keys, so that two statements with the same events cannot block
// each other, and get times in the order of events. A stored event is left out before ON CONFLICT would wait
// for the attempt that processes it. If another transaction is storing an event, the statement waits for
// lockWait at most, and fails: see [pgtx.RowLocked].
func InsertPending(ctx context.Context, db DB, events []Incoming) ([]Inserted, error) {
	const insert = `
with input as materialized (
	select i.*, e.state,
		e.body_hash is distinct from i.body_hash or current_setting('synchronous_standby_names') <> '' as unsure
	from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bytea[], $10::text[], $11::timestamptz[])
		with ordinality as i (event, type, key, lane, occurred_at, body_hash, body, trace, at, place)
	left join lateral (select state, body_hash from idem_events where event = i.event offset 0) e on true
), new as (
	insert into idem_events (event, type, key, state, received_at, body_hash, occurred_at)
	select event, type, key, 'pending', coalesce(at, now()) + place * interval '1 microsecond', body_hash, occurred_at from input
	where (select set_config('lock_timeout', $9, true)) is not null and state is null
	order by event
	on conflict do nothing
	returning event, received_at, ` + onDisk + `
), bodies as (
	insert into idem_payloads (event, source, lane, due_at, occurred_at, received_at, body, trace)
	select event, $8, lane, now(), occurred_at, new.received_at, body, nullif(trace, '') from new join input using (event)
	on conflict (event) do update set -- of an event whose row was deleted by hand
		lane = excluded.lane, due_at = excluded.due_at, occurred_at = excluded.occurred_at,
		received_at = excluded.received_at, body = excluded.body, trace = excluded.trace
)
select place, event in (select event from new), case when unsure then '' else coalesce(state, '') end from input`
	if len(events) == 0 {
		return nil, nil
	}
	n := len(events)
	keys, types, entities, lanes, traces := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	occurred, sums, bodies, at := make([]*time.Time, 0, n), make([]int64, 0, n), make([][]byte, 0, n), make([]*time.Time, 0, n)
	seen, places := make(map[string]bool, n), make([]int, 0, n) // the place among events of each row
	for i, e := range events {
		key := e.RowKey()
		if seen[key] {
			continue
		}
		seen[key], places = true, append(places, i)
		keys, types, entities, lanes = append(keys, key), append(types, e.Type), append(entities, e.Key), append(lanes, e.Lane())
		occurred, sums, bodies = append(occurred, nullTime(e.OccurredAt)), append(sums, hash(e.Payload)), append(bodies, e.Payload)
		traces, at = append(traces, e.Trace), append(at, nullTime(e.At))
	}
	all := make([]Inserted, n)
	b := &pgx.Batch{}
	if len(keys) == 1 {
		b.Queue(planOnce)
	}
	args := []any{keys, types, entities, lanes, occurred, sums, bodies, events[0].Source, lockWait, traces, at}
	b.Queue(insert, args...).Query(func(rows pgx.Rows) error {
		var place int
		var one Inserted
		_, err := pgx.ForEachRow(rows, []any{&place, &one.New, &one.State}, func() error {
			all[places[place-1]] = one
			return nil
		})
		return err
	})
	return all, ReadCommitted(ctx, db, b)
}

// planOnce is executed before the insert of one event, which takes as long to plan as to execute. Without it Postgres
// plans each: a plan for arrays of any length is one for ten elements, and seems to cost more. A group is planned for its
// length.
const planOnce = `set local plan_cache_mode = force_generic_plan`

const lockWait = "20ms"

// Revive makes a stored event pending that is unhandled or parked, because it was delivered again. It keeps the
// event's crashes. revived is false if the event is in another state, or being processed.
func Revive(ctx context.Context, db DB, e Incoming) (revived bool, err error) {
	const revive = `
with kept as (
	select event from idem_events where event = $1 and state in ('unhandled', 'parked') for update skip locked
), again as (
	update idem_events e set state = 'pending', attempts = 0, claimed_at = null, claimed_by = null from kept where e.event = kept.event
	returning e.event, e.key, ` + onDisk + `
), body as (
	insert into idem_payloads as p (event, source, lane, due_at, occurred_at, received_at, body, trace)
	select event, $2, ` + rowLane + `, now(), $3, now(), $4, nullif($5, '') from again e
	on conflict (event) do update set lane = excluded.lane, due_at = excluded.due_at, acknowledged_at = null, trace = excluded.trace
)
select count(*) = 1 from again`
	args := []any{e.RowKey(), e.Source, nullTime(e.OccurredAt), e.Payload, e.Trace}
	err = readCommitted(ctx, db, revive, args, func(rows pgx.Rows) (err error) {
		revived, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		return err
	})
	return revived, err
}

// InsertMessage stores an event of the application's own for workers, unless it is stored. The event's time
// is the time of the statement, not of the transaction: of two transactions that wait for each other's rows,
// the first to commit has the earlier time.
func InsertMessage(b *pgx.Batch, e Incoming) {
	const insert = `
with new as (
	insert into idem_events (event, type, key, state, received_at, body_hash) values ($1, $2, $3, 'pending', clock_timestamp(), $4)
	on conflict do nothing
	returning event, received_at
)
insert into idem_payloads (event, source, lane, due_at, occurred_at, received_at, body, trace)
select event, $5, $6, received_at, received_at, received_at, $7, nullif($8, '') from new`
	b.Queue(insert, e.RowKey(), e.Type, e.Key, hash(e.Payload), e.Source, e.Lane(), e.Payload, e.Trace)
}

// NoteConflict records that another body is stored with the id of an event, once for an event. Queue it after
// the statement that stores the event. found is set if the conflict is the first.
func NoteConflict(b *pgx.Batch, e Event, found *bool) {
	const note = `
update idem_events set conflict_at = now() where event = (
	select event from idem_events where event = $1 and body_hash <> $2 and conflict_at is null for update skip locked)`
	b.Queue(note, e.RowKey(), hash(e.Payload)).Exec(func(tag pgconn.CommandTag) error {
		*found = tag.RowsAffected() > 0
		return nil
	})
}

// StoreUnprocessed stores an event that no handler can process now, with its body, as unhandled or parked.
// stored is false if the event was stored before. A parked event holds its lane unless pass is set.
func StoreUnprocessed(ctx context.Context, db DB, e Event, state string, lastError *string, pass bool) (stored bool, err error) {
	err = fitting(lastError, func(lastError *string) error {
		args := []any{e.RowKey(), e.Type, e.Key, state, lastError, hash(e.Payload), e.Source, nullTime(e.OccurredAt), e.Payload, pass}
		return readCommitted(ctx, db, storeUnprocessed, args, func(rows pgx.Rows) (err error) {
			stored, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
			return err
		})
	})
	return stored, err
}

var storeUnprocessed = `
with kept as (
	insert into idem_events as e (event, type, key, state, last_error, body_hash, occurred_at) values ($1, $2, $3, $4, $5, $6, $8)
	on conflict do nothing
	returning event, key, state, ` + onDisk + `
), body as (
	insert into idem_payloads as p (event, source, lane, occurred_at, received_at, body, failures)
	select event, $7, case when state = 'parked' and not $10 then ` + rowLane + ` end, $8, now(), $9,
		case when $5::text is not null then ` + failure("$5") + ` end from kept e
	on conflict (event) do update set lane = excluded.lane, failures = ` + failuresAnd("$5") + `
	where excluded.lane is not null or excluded.failures is not null
)
select count(*) = 1 from kept`

// Failure is an attempt at an event that failed.
type Failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"` // its first 300 characters
}

// failure is an attempt that fails now, as an element of idem_payloads.failures.
func failure(lastError string) string {
	return `jsonb_build_array(jsonb_build_object('at', clock_timestamp(), 'error', left(` + lastError + `::text, 300)))`
}

// failuresAnd is the failures of the row p of idem_payloads, the last five of them, after an attempt that
// fails now with lastError; unchanged if lastError is null.
func failuresAnd(lastError string) string {
	return `case
	when ` + lastError + `::text is null then p.failures
	when jsonb_array_length(p.failures) >= 5 then p.failures - 0 || ` + failure(lastError) + `
	else coalesce(p.failures, '[]') || ` + failure(lastError) + ` end`
}

// CountSetAside returns the number of bodies of a source that are set aside, most at most.
func CountSetAside(ctx context.Context, db DB, source string, most int64) (n int64, err error) {
	const count = `
select count(*) from (select from idem_payloads p ` + openEvent + `
where p.source = $1 and p.due_at is null and e.state = 'parked' and e.type = $2 limit $3) aside`
	err = db.QueryRow(ctx, count, source, SetAsideType, most).Scan(&n)
	return n, err
}
