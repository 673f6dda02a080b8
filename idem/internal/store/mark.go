package store

import (
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

// Mark records a new event as done. The insert is the duplicate check: it does
// nothing if the event is stored, and waits while another transaction stores it.
func Mark(b *pgx.Batch, e Event, keepBody bool, s *Session) {
	const mark = `
insert into idem_events (event, type, key, state, body_hash) values ($1, $2, $3, 'done', $4)
on conflict do nothing
returning ` + session
	const markKeeping = `
with marked as (
	insert into idem_events (event, type, key, state, body_hash) values ($1, $2, $3, 'done', $4)
	on conflict do nothing
	returning event, ` + session + `
), kept as (
	insert into idem_archive (event, occurred_at, received_at, body) select event, $5, now(), $6 from marked
	on conflict do nothing
)
select pid, started_at, path, role, strict, waits from marked`
	key, sum := e.RowKey(), hash(e.Payload)
	if keepBody {
		b.Queue(markKeeping, key, e.Type, e.Key, sum, nullTime(e.OccurredAt), e.Payload).QueryRow(s.scan)
		return
	}
	b.Queue(mark, key, e.Type, e.Key, sum).QueryRow(s.scan)
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
