package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Session identifies a marking transaction to Postgres. It is zero until its
// event is marked, and stays so if it is another's.
type Session struct {
	PID       uint32
	StartedAt time.Time

	SearchPath, Role, SynchronousCommit string // before the handler changes them

	Strict bool // stricter than read committed: it does not see what others commit meanwhile
}

func (s *Session) scan(row pgx.Row) error {
	err := row.Scan(&s.PID, &s.StartedAt, &s.SearchPath, &s.Role, &s.Strict, &s.SynchronousCommit)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

const session = `pg_backend_pid() as pid, now() as started_at, current_setting('search_path') as path, current_setting('role') as role, ` +
	`current_setting('transaction_isolation') in ('repeatable read', 'serializable') as strict, ` +
	`coalesce(` + onDisk + `, current_setting('synchronous_commit')) as waits`

// Held is what an event waits for that is not processed now.
type Held struct {
	By    string // the id of the first event of its lane
	State string // of that, and so of the event: Pending or Parked; "" when it waits for none
}

// scan reads a session, of a marked event, or what the event is held by.
func (h *Held) scan(s *Session) func(pgx.Row) error {
	return func(row pgx.Row) error {
		var by, state *string
		found := Session{}
		err := row.Scan(&found.PID, &found.StartedAt, &found.SearchPath, &found.Role, &found.Strict, &found.SynchronousCommit, &by, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		case by != nil:
			*h = Held{By: *by, State: *state}
		default:
			*s = found
		}
		return nil
	}
}

// Mark records a new event as done. The insert is the duplicate check: it does
// nothing if the event is stored, and waits while another transaction stores it.
//
// Where an earlier event of its lane is parked or pending, the event is stored
// with that state instead, held is set, and the session stays zero. [KeepHeld]
// must follow in the same transaction.
func Mark(b *pgx.Batch, e Event, keepBody bool, held *Held, s *Session) {
	const head = `
with head as materialized (` + earlier + `
)`
	const mark = `
insert into idem_events (event, type, key, state, last_error, body_hash)
values ($1, $2, $3, coalesce((select state from head), 'done'), (select 'waits for ' || id from head), $4)
on conflict do nothing
returning ` + session + `, (select id from head) as by, (select state from head) as held`
	const markKeeping = head + `, marked as (` + mark + `, event), kept as (
	insert into idem_archive (event, occurred_at, received_at, body)
	select event, $6, now(), $7 from marked where held is null
	on conflict do nothing
)
select pid, started_at, path, role, strict, waits, by, held from marked`
	*held = Held{}
	args := []any{e.RowKey(), e.Type, e.Key, hash(e.Payload), e.Lane(), nullTime(e.OccurredAt)}
	if keepBody {
		b.Queue(markKeeping, append(args, e.Payload)...).QueryRow(held.scan(s))
		return
	}
	b.Queue(head+mark, args...).QueryRow(held.scan(s))
}

// KeepHeld stores the body of an event that [Mark] has held.
func KeepHeld(b *pgx.Batch, e Event, held Held) {
	const keep = `
insert into idem_payloads (event, source, lane, due_at, held, occurred_at, received_at, body)
values ($1, $2, $3, case when $4 then null else now() end, $4, $5, now(), $6)
on conflict (event) do update set -- of an event whose row was deleted by hand
	lane = excluded.lane, due_at = excluded.due_at, held = excluded.held, occurred_at = excluded.occurred_at,
	received_at = excluded.received_at, body = excluded.body`
	b.Queue(keep, e.RowKey(), e.Source, e.Lane(), held.State == Parked, nullTime(e.OccurredAt), e.Payload)
}

// Hold has a stored event wait that is retrying, unhandled or parked, if an earlier
// event of its lane is parked or pending. The result is zero if there is none.
func Hold(ctx context.Context, db DB, e Event) (held Held, err error) {
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
	err = db.QueryRow(ctx, hold, e.RowKey(), e.Lane()).Scan(&held.By, &held.State)
	if errors.Is(err, pgx.ErrNoRows) {
		return Held{}, nil
	}
	return held, err
}

// Stored chooses how [MarkStored] marks.
type Stored struct {
	States   []string // in which the event may be
	Claim    int      // the number of the claim that must hold it; 0 for none in particular
	Wait     bool     // for others that process an event of the lane
	KeepBody bool
}

// MarkStored records a stored event as done, and deletes its body. If the event
// is in another state, claimed by another, if an earlier event of its lane is not
// done, or if another event of its lane is being processed, the session stays
// zero, and the transaction must be rolled back.
func MarkStored(b *pgx.Batch, e Event, how Stored, s *Session) {
	const mark = `
update idem_events e set state = 'done', last_error = null, claimed_at = null, claimed_by = null
where event = $1 and state = any ($2) and ($3 = 0 or starts = $3)
  and pg_try_advisory_xact_lock(hashtextextended($4, 'idem_events'::regclass::oid::bigint))
  and not exists (
	select from idem_payloads p where p.lane = $4 and (` + order + `) < (
		select coalesce(own.occurred_at, own.received_at), own.received_at, own.event from idem_payloads own where own.event = $1))
returning ` + session
	// Only where the update has marked: promoteHeld would wait for the lock of a body that stays.
	const marked = ` where event = $1 and (select state from idem_events where event = $1) = 'done'`
	const deleteBody = `delete from idem_payloads` + marked
	const archiveBody = `
with body as (delete from idem_payloads` + marked + ` returning *)
insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from body
on conflict do nothing`
	key, lane := e.RowKey(), e.Lane()
	if how.Wait {
		// A statement of its own, so that the next one sees what was committed while this one waited.
		b.Queue(`select pg_advisory_xact_lock(hashtextextended($1, 'idem_events'::regclass::oid::bigint))`, lane)
	}
	b.Queue(mark, key, how.States, how.Claim, lane).QueryRow(s.scan)
	if how.KeepBody {
		b.Queue(archiveBody, key)
		return
	}
	b.Queue(deleteBody, key)
}
