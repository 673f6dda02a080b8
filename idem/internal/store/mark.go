package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Mark records a new event as done. The insert is the duplicate check: it does
// nothing if the event is stored, and waits while another transaction stores it.
//
// The session also stays zero if an earlier event of the lane is parked or pending: [Look] then does not find
// the event, and [HoldNew] stores it.
func Mark(b *pgx.Batch, e Event, archive bool, s *pgtx.Session) {
	const mark = `
insert into idem_events (event, type, key, state, body_hash, occurred_at)
select $1::text, $2::text, $3::text, 'done', $4::bigint, $6::timestamptz
where (select p.event from idem_payloads p where ` + isEarlier + ` order by ` + order + ` limit 1) is null
on conflict do nothing
returning ` + session
	const markAndArchive = `
with marked as (` + mark + `, event), kept as (
	insert into idem_archive (event, occurred_at, received_at, body)
	select event, $6, now(), $7 from marked
	on conflict do nothing
)
select pid, started_at, path, role, strict, waits from marked`
	args := []any{e.RowKey(), e.Type, e.Key, hash(e.Payload), e.Lane(), nullTime(e.OccurredAt)}
	if archive {
		b.Queue(markAndArchive, append(args, e.Payload)...).QueryRow(scan(s))
		return
	}
	b.Queue(mark, args...).QueryRow(scan(s))
}

// Held names the event that another event waits for.
type Held struct {
	By    string // the id of the first event of its lane
	State string // the state of both events: Pending or Parked; "" if the event waits for none
}

// HoldNew stores a new event behind an earlier event of its lane that is parked or pending, in the same
// state. The result is zero if there is no earlier one any more, or if the event is stored already.
func HoldNew(ctx context.Context, db DB, e Event) (held Held, err error) {
	const hold = `
with head as materialized (` + earlier + `
), marked as (
	insert into idem_events (event, type, key, state, last_error, body_hash, occurred_at)
	select $1, $2, $3, state, 'waits for ' || id, $4, $6 from head
	on conflict do nothing
	returning event, state, ` + onDisk + `
), body as (
	insert into idem_payloads (event, source, lane, due_at, held, occurred_at, received_at, body)
	select event, $7, $5, case state when 'pending' then now() end, state = 'parked', $6, now(), $8 from marked
	on conflict (event) do update set -- of an event whose row was deleted by hand
		lane = excluded.lane, due_at = excluded.due_at, held = excluded.held, occurred_at = excluded.occurred_at,
		received_at = excluded.received_at, body = excluded.body
)
select head.id, head.state from head, marked`
	return holds(ctx, db, hold, e.RowKey(), e.Type, e.Key, hash(e.Payload), e.Lane(), nullTime(e.OccurredAt), e.Source, e.Payload)
}

// Hold has a stored event wait that is retrying, unhandled or parked, if an earlier event of its lane is
// parked or pending. The result is zero if there is no earlier one.
func Hold(ctx context.Context, db DB, e Event) (Held, error) {
	const hold = `
with own as materialized (
	select e.event, p.occurred_at, p.received_at from idem_events e join idem_payloads p using (event)
	where e.event = $1 and e.state in ('retrying', 'unhandled', 'parked') for update of e
), head as materialized (
	select p.event, substring(p.event from '^[^/]*/[^/]*/(.*)$') as id,
		case (select e.state from idem_events e where e.event = p.event) when 'pending' then 'pending' else 'parked' end as state
	from idem_payloads p
	where p.lane = $2 and (` + order + `) < (select coalesce(occurred_at, received_at), received_at, event from own)
	order by ` + order + ` limit 1 for share
), waits as (
	update idem_events e set state = head.state, last_error = 'waits for ' || head.id from head, own where e.event = own.event
	returning e.event, head.id, head.state, ` + onDisk + `
), body as (
	update idem_payloads p set lane = $2, held = waits.state = 'parked', due_at = case waits.state when 'pending' then now() end
	from waits where p.event = waits.event
)
select id, state from waits`
	return holds(ctx, db, hold, e.RowKey(), e.Lane())
}

// holds executes a statement that returns a Held.
func holds(ctx context.Context, db DB, sql string, args ...any) (held Held, err error) {
	err = readCommitted(ctx, db, sql, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&held.By, &held.State}, func() error { return nil })
		return err
	})
	return held, err
}

// isEarlier is the condition of events in lane $5 that are before an event $1 of the time $6 that is stored
// now. An event does not wait for itself: the insert waits for the other attempt.
const isEarlier = `p.lane = $5 and p.event <> $1 and (` + order + `) < (coalesce($6, now()), now(), $1)`

// earlier selects the first event of lane $5, if it is before an event $1 of the time $6 that is stored now,
// and the state in which the latter has to wait. The row is locked, see the package comment; the lock waits
// for an attempt at the first event.
const earlier = `
	select p.event, substring(p.event from '^[^/]*/[^/]*/(.*)$') as id,
		case (select e.state from idem_events e where e.event = p.event) when 'pending' then 'pending' else 'parked' end as state
	from idem_payloads p
	where ` + isEarlier + `
	order by ` + order + ` limit 1 for share`

// Stored chooses how [MarkStored] marks.
type Stored struct {
	States  []string // the states in which the event may be
	Claim   int      // the number of the claim that must hold it; 0 for none in particular
	Worker  int64    // the worker with that claim: see [FindDeadSessions]
	Wait    bool     // wait for other attempts in the lane
	Archive bool
}

// MarkStored records a stored event as done, and deletes its body. If the event is in another state or
// claimed by another worker, if an earlier event of its lane is not done, or if another event of its lane is
// being processed, the session stays zero, and the transaction must be rolled back.
func MarkStored(b *pgx.Batch, e Event, how Stored, s *pgtx.Session) {
	const mark = `
update idem_events e set state = 'done', last_error = null, done_at = now(), claimed_at = null, claimed_by = null
where event = $1 and state = any ($2) and ($3 = 0 or starts = $3)
  and pg_try_advisory_xact_lock(hashtextextended($4, 'idem_events'::regclass::oid::bigint))
  and ($3 = 0 or pg_try_advisory_xact_lock_shared(hashtext('idem_workers'::regclass::oid || $5), hashint8($6)))
  and not exists (
	select from idem_payloads p where p.lane = $4 and (` + order + `) < (
		select coalesce(own.occurred_at, own.received_at), own.received_at, own.event from idem_payloads own where own.event = $1))
returning ` + session
	// Only if the update has marked the event: promoteHeld would wait for the lock of a body that stays.
	const marked = ` where event = $1 and (select state from idem_events where event = $1) = 'done'`
	const deleteBody = `delete from idem_payloads` + marked
	const archiveBody = `
with body as (delete from idem_payloads` + marked + ` returning *)
insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from body
on conflict do nothing`
	key, lane := e.RowKey(), e.Lane()
	if how.Wait {
		// A separate statement: the next one sees rows that were committed during the wait.
		b.Queue(`select pg_advisory_xact_lock(hashtextextended($1, 'idem_events'::regclass::oid::bigint))`, lane)
	}
	b.Queue(mark, key, how.States, how.Claim, lane, e.Source, how.Worker).QueryRow(scan(s))
	if how.Archive {
		b.Queue(archiveBody, key)
		return
	}
	b.Queue(deleteBody, key)
}

const session = `pg_backend_pid() as pid, now() as started_at, current_setting('search_path') as path, current_setting('role') as role, ` +
	`current_setting('transaction_isolation') in ('repeatable read', 'serializable') as strict, ` +
	`coalesce(` + onDisk + `, current_setting('synchronous_commit')) as waits`

// scan returns a function that reads the result of a marking statement into s. s stays zero if the event was
// not marked.
func scan(s *pgtx.Session) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(&s.PID, &s.StartedAt, &s.SearchPath, &s.Role, &s.Strict, &s.SynchronousCommit)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
}

// Found is the stored state of an event.
type Found struct {
	State         string // "" if the event is not stored
	Key           string // the entity with which the event was first stored
	Conflict      bool   // another body is stored with the event's id
	FirstConflict bool   // this delivery is the first to conflict
}

// Look reads the state of an event. If another body is stored, Look records the conflict, unless the event is
// being processed. It does not wait for locks.
//
// With synchronous replication Look waits for the replica. If the wait of a commit was broken off, its rows
// are visible although only the primary has them: such an event must not pass for stored. A key-share lock of
// the row is the weakest statement that makes this commit wait for the replica; it may have to wait for a
// claim.
func Look(b *pgx.Batch, e Event, f *Found) {
	const look = `
with locked as (
	select event, ` + onDisk + ` from idem_events
	where event = $1 and current_setting('synchronous_standby_names') <> '' for key share
), conflict as (
	update idem_events set conflict_at = now() where event = (
		select event from idem_events where event = $1 and body_hash <> $2 and conflict_at is null for update skip locked)
	returning event
)
select state, key, coalesce(body_hash <> $2, false), exists (select from conflict) from idem_events
where event = $1 and (select count(*) from locked) >= 0`
	b.Queue(look, e.RowKey(), hash(e.Payload)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&f.State, &f.Key, &f.Conflict, &f.FirstConflict)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// LookUp is [Look] in a round trip of its own.
func LookUp(ctx context.Context, db DB, e Event) (f Found, err error) {
	b := &pgx.Batch{}
	Look(b, e, &f)
	err = ReadCommitted(ctx, db, b)
	return f, err
}
