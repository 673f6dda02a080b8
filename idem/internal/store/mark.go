package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Mark records a new event as done, for a first try. The insert is the duplicate check: it does nothing if the
// event is stored, and waits while another transaction stores it.
//
// The session also stays zero if the event is paused, if an earlier event of the lane is not done, or if another
// event of the lane is being processed. Mark does not wait for that one.
func Mark(b *pgx.Batch, e Event, archive bool, s *pgtx.Session) {
	mark := `
insert into idem_events (event, type, key, state, body_hash, occurred_at)
select $1::text, $2::text, $3::text, 'done', $4::bigint, $6::timestamptz
where pg_try_advisory_xact_lock(` + laneLock("$5") + `)
  and (select p.event from idem_payloads p where ` + isEarlier + ` order by ` + order + ` limit 1) is null
  and ` + pausedUntil("$7", "$2", "$3") + ` is null
on conflict do nothing
returning ` + session
	markAndArchive := `
with marked as (` + mark + `, event), kept as (
	insert into idem_archive (event, occurred_at, received_at, body)
	select event, $6, now(), $8 from marked
	on conflict do nothing
)
select pid, started_at, path, role, strict, waits from marked`
	args := []any{e.RowKey(), e.Type, e.Key, hash(e.Payload), e.Lane(), nullTime(e.OccurredAt), e.Source}
	if archive {
		b.Queue(markAndArchive, append(args, e.Payload)...).QueryRow(scan(s))
		return
	}
	b.Queue(mark, args...).QueryRow(scan(s))
}

// isEarlier is the condition of events in lane $5 that are before an event $1 of the time $6 that is stored
// now. An event does not wait for itself: if it is stored, the insert does nothing.
const isEarlier = `p.lane = $5 and p.event <> $1 and (` + order + `) < (coalesce($6, now()), now(), $1)`

// Stored chooses how [MarkStored] marks.
type Stored struct {
	Claim   int   // the number of the claim that must hold it
	Worker  int64 // the worker with that claim: see [FindDeadSessions]
	Wait    bool  // wait for other attempts in the lane
	Archive bool
}

// MarkStored records a claimed event as done, and deletes its body. If the event is not open any more, or is
// claimed by another worker, if an earlier event of its lane is not done, or if another event of its lane is
// being processed, the session stays zero, and the transaction must be rolled back.
func MarkStored(b *pgx.Batch, e Event, how Stored, s *pgtx.Session) {
	mark := `
update idem_events e set state = 'done', last_error = null, done_at = now(), claimed_at = null, claimed_by = null
where event = $1 and ` + isOpen + ` and starts = $2
  and pg_try_advisory_xact_lock(` + laneLock("$3") + `)
  and pg_try_advisory_xact_lock_shared(hashtext('idem_workers'::regclass::oid || $4), hashint8($5))
  and not exists (
	select from (select ` + order + ` from idem_payloads p where p.lane = $3 order by ` + order + ` limit 1) as head (at, received_at, event)
	where (head.at, head.received_at, head.event) < (
		select coalesce(own.occurred_at, own.received_at), own.received_at, own.event from idem_payloads own where own.event = $1))
returning ` + session
	// Only if the update has marked the event: promoteWaiting would wait for the lock of a body that stays.
	const marked = ` where event = $1 and (select state from idem_events where event = $1) = 'done'`
	const deleteBody = `delete from idem_payloads` + marked
	const archiveBody = `
with body as (delete from idem_payloads` + marked + ` returning *)
insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from body
on conflict do nothing`
	key, lane := e.RowKey(), e.Lane()
	if how.Wait {
		// A separate statement: the next one sees rows that were committed during the wait.
		b.Queue(`select pg_advisory_xact_lock(`+laneLock("$1")+`)`, lane)
	}
	b.Queue(mark, key, how.Claim, lane, e.Source, how.Worker).QueryRow(scan(s))
	if how.Archive {
		b.Queue(archiveBody, key)
		return
	}
	b.Queue(deleteBody, key)
}

// MarkAgain locks the row of a done event, whose handler is to run once more, and changes nothing. The session stays
// zero if the event is not done, or if another event of its lane is being processed.
func MarkAgain(b *pgx.Batch, e Event, s *pgtx.Session) {
	mark := `
select ` + session + ` from idem_events
where event = $1 and state = 'done' and pg_try_advisory_xact_lock(` + laneLock("$2") + `)
for update`
	b.Queue(mark, e.RowKey(), e.Lane()).QueryRow(scan(s))
}

// isOpen is the condition that an event may be processed.
const isOpen = `state in ('pending', 'unhandled', 'parked')`

// laneLock is the advisory lock of the lane that is named by a parameter of a statement. Whoever processes an event
// of the lane holds it.
func laneLock(lane string) string {
	return `hashtextextended(` + lane + `, 'idem_events'::regclass::oid::bigint)`
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
select state, coalesce(body_hash <> $2, false), exists (select from conflict) from idem_events
where event = $1 and (select count(*) from locked) >= 0`
	b.Queue(look, e.RowKey(), hash(e.Payload)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&f.State, &f.Conflict, &f.FirstConflict)
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
