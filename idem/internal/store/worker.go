package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/internal/outage"
)

// Search describes the events that a claim looks for.
type Search struct {
	Source  string
	After   time.Time // only events that are due later: the position of an earlier search; zero for all
	Limit   int       // the largest number of claims
	Worker  int64     // the ID of the claiming [Worker]
	Running []string  // the row keys of the worker's known claims; its other claims may be claimed again
	Crashed int       // the number of crashes from which an event must run alone

	WithCrashed bool     // an event that must run alone may be claimed
	Without     []string // no events of these types
}

// Claim is an event that a worker has claimed.
type Claim struct {
	Event
	Number   int           // the fencing token: it grows with each claim of the event, and only the latest claim may end the attempt
	Attempts int           // failed ones
	Crashes  int           // earlier claims whose process died
	Waited   time.Duration // since the event arrived
	Trace    string

	SinceFailure *time.Duration // since the last failed attempt, even if a person has requeued the event; nil if none has failed
	Again        bool           // the worker had claimed it already, and nobody has ended that claim
}

// Claims is the result of a search: the claimed events, and the extent of the search.
type Claims struct {
	Search    Search
	Claims    []Claim
	Seen      int       // rows that were looked at
	Last      time.Time // when the last of these rows was due
	Postponed int       // rows that wait for an event that is being processed, and will be due again in a moment
}

// MayBeMore reports whether more events may be due: the search has ended at its limit, or there was no
// search.
func (f Claims) MayBeMore() bool { return f.Seen == f.Search.Limit }

// ClaimEvents claims due events that are the first of their lanes. If the reply to COMMIT was lost, found
// still lists the claims, and [MarkStored] rejects the ones that did not commit.
func ClaimEvents(ctx context.Context, db DB, s Search) (found Claims, err error) {
	b := &pgx.Batch{}
	b.Queue(claimSettings)
	b.Queue(claim, s.Source, s.After, s.Limit, s.Worker, s.WithCrashed, s.Crashed, s.Running, append([]string{}, s.Without...)).Query(func(rows pgx.Rows) error {
		return found.collect(rows)
	})
	found.Search = s
	err = ReadCommitted(ctx, db, b)
	return found, err
}

// claimSettings are settings for a claim and [PutOff] only, which walk along indexes and stop early. A plan that was
// made while the tables were empty would read and sort the tables, and would be kept. Planning each claim
// would take longer than the claim.
const claimSettings = `
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)`

// claim looks at pending events that are due. An event that a dead worker had claimed has crashed; an event
// that this worker has claimed without knowing, since the answer was lost, has not. The first event of a lane
// is claimed. An event behind the first is held back until it is promoted, if the payload of the first can be
// locked, see the package comment; otherwise the first is being processed, and the event behind it is due
// again a moment later.
//
// Only e is locked, and so seen as it is now; p is as it was when the statement began. An event that another
// worker has claimed meanwhile, and given up, may not be due any more: the comparison of starts leaves it
// alone.
const claim = `
with due as materialized (
	select e.event, e.crashes + coalesce(e.claimed_by <> $4, false)::int as crashes, p.lane, p.due_at, p.occurred_at, p.received_at, p.body, p.trace,
		now() - (p.failures -> -1 ->> 'at')::timestamptz as since_failure, coalesce(e.claimed_by = $4, false) as again
	from idem_payloads p join idem_events e using (event)
	where p.source = $1 and p.due_at > $2 and p.due_at <= now()
	  and e.state = 'pending' and (e.claimed_by is null or e.claimed_by = $4 and e.event <> all ($7)
	    or e.claimed_by <> $4 and not exists (select from idem_workers w where w.id = e.claimed_by))
	  and ($5 or e.crashes + coalesce(e.claimed_by <> $4, false)::int < $6) and e.type <> all ($8)
	  and e.starts = (select began.starts from idem_events began where began.event = p.event)
	order by p.due_at limit $3
	for update of e skip locked
), heads as materialized (
	select due.*, head.event as head from due cross join lateral (
		select p.event from idem_payloads p where p.lane = due.lane order by ` + order + ` limit 1) head
), claimed as (
	update idem_events e set starts = starts + 1, crashes = heads.crashes, claimed_at = now(), claimed_by = $4
	from heads where e.event = heads.event and heads.head = heads.event
	  and (heads.crashes < $6 or heads.event = (select min(event) from heads where crashes >= $6))
	returning e.event, e.type, e.key, e.starts, e.attempts
), locked as materialized (
	select p.event from idem_payloads p
	where p.event = any (array(select head from heads where head <> event))
	  and coalesce(p.lane, '') <> '' -- still; "is not null" has Postgres read all of an index
	for update skip locked
), later as (
	update idem_payloads p set due_at = case when locked.event is null then now() + ` + postpone + ` end
	from heads left join locked on locked.event = heads.head
	where p.event = heads.event and heads.head <> heads.event
	returning p.due_at
)
select h.event, h.due_at, (select count(due_at) from later),
	coalesce(c.type, ''), coalesce(c.key, ''), coalesce(c.starts, 0), coalesce(c.attempts, 0), h.crashes, now() - h.received_at, h.occurred_at,
	case when c.event is not null then h.body end, coalesce(h.trace, ''), h.since_failure, h.again
from heads h left join claimed c using (event)
order by h.due_at`

// PostponeTime is the time after which an event is due again that waits for an event being processed, or that
// was claimed and not processed. postpone is the same in SQL.
const PostponeTime = 100 * time.Millisecond

const postpone = `interval '100 milliseconds'`

func (f *Claims) collect(rows pgx.Rows) error {
	var key string
	var c Claim
	scans := []any{&key, &f.Last, &f.Postponed, &c.Type, &c.Key, &c.Number, &c.Attempts, &c.Crashes, &c.Waited, orZero(&c.OccurredAt), &c.Payload, &c.Trace, &c.SinceFailure, &c.Again}
	_, err := pgx.ForEachRow(rows, scans, func() error {
		f.Seen++
		if c.Number > 0 { // the event was claimed
			c.setRowKey(key)
			f.Claims = append(f.Claims, c)
		}
		return nil
	})
	return err
}

// End is the end of a claim on an event that is not done.
type End struct {
	State      string        // Pending, Parked or Unhandled
	Attempts   int           // the number to add
	LastError  *string       // nil leaves the last error as it is
	Wait       time.Duration // Pending: the time until the event is due
	LeavesLane bool          // the event leaves its lane, and the events behind it go on
	Returned   bool          // the handler has returned, and so the event does not kill processes: its crashes are forgotten
}

// EndClaim ends a claim. ended is false if the claim has ended already, or another worker has claimed the
// event since.
func EndClaim(ctx context.Context, db DB, c Claim, end End) (ended bool, err error) {
	err = fitting(end.LastError, func(lastError *string) error {
		b := &pgx.Batch{}
		b.Queue(endClaim, c.RowKey(), c.Number, end.State, end.Attempts, lastError, end.Wait, end.LeavesLane, end.Returned).QueryRow(func(row pgx.Row) error {
			return row.Scan(&ended)
		})
		if end.LeavesLane {
			b.Queue(promoteHeld, c.Lane())
		}
		return ReadCommitted(ctx, db, b)
	})
	return ended, err
}

var endClaim = `
with settled as (
	update idem_events set state = $3, attempts = attempts + $4, last_error = coalesce($5, last_error),
		crashes = case when $8 then 0 else crashes end, claimed_at = null, claimed_by = null
	where event = $1 and state = 'pending' and starts = $2 and claimed_by is not null -- a repetition counts nothing
	returning event
), body as (
	update idem_payloads p set
		due_at = case when $3 = 'pending' then now() + $6::interval end,
		lane = case when $7 then null else p.lane end,
		failures = ` + failuresAnd("$5") + `
	from settled where p.event = settled.event
)
select count(*) = 1 from settled`

// MaxPutOff is the number of events that a PutOff looks at.
const MaxPutOff = 1000

// PutOff puts off events that are due, among the first MaxPutOff of a source, and returns how many. As a claim does, it
// locks the row of an event before it changes its body, and leaves alone what others have locked.
func PutOff(ctx context.Context, db DB, source string, h outage.Holding) (n int, err error) {
	const putOff = `
with due as materialized (
	select event, due_at from idem_payloads where source = $1 and due_at <= now() order by due_at limit $6
), held as materialized (
	select e.event, due.due_at, failing.most
	from due join idem_events e using (event) join unnest($2::text[], $3::interval[]) as failing (type, most) using (type)
	where e.state = 'pending' and e.claimed_by is null
	for update of e skip locked
), places as (
	select event, least($4::interval + row_number() over (order by due_at) * $5::interval, most) as wait from held
)
update idem_payloads p set due_at = now() + places.wait from places where p.event = places.event and p.due_at <= now()`
	b := &pgx.Batch{}
	b.Queue(claimSettings)
	b.Queue(putOff, source, h.Types, h.Most, h.First, outage.Pace, MaxPutOff).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	err = ReadCommitted(ctx, db, b)
	return n, err
}

// Worker is a row of idem_workers: the workers of one runner, in one process, which
// claim events of one source.
type Worker struct {
	ID        int64
	Source    string
	Host      string
	PID       int
	StartedAt time.Time
	SeenAt    time.Time
	Silent    time.Duration // since SeenAt, by the database's clock, which may have been put back
}

// Alive is the largest age of a living worker's last sign. It is for people, and for code outside of workers:
// a claim ends only when the worker's row is deleted.
const Alive = 12 * time.Second

// Sign writes a worker's sign of life, and returns the other workers of its source. The commit does not wait
// for the disk: it is on disk before any later claim of the worker, which does.
func Sign(ctx context.Context, db DB, w Worker, running time.Duration) (others []Worker, err error) {
	const sign = `
insert into idem_workers as w (id, source, host, pid, started_at, seen_at) values ($1, $2, $3, $4, now() - $5::interval, now())
on conflict (id) do update set seen_at = excluded.seen_at`
	b := &pgx.Batch{}
	b.Queue(`select set_config('synchronous_commit', 'off', true)`)
	b.Queue(sign, w.ID, w.Source, w.Host, w.PID, running)
	b.Queue(workers+` and id <> $2`, w.Source, w.ID).Query(func(rows pgx.Rows) (err error) {
		others, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
		return err
	})
	err = ReadCommitted(ctx, db, b)
	return others, err
}

const workers = `
select id, source, host, pid, started_at, seen_at, now() - seen_at from idem_workers where source = $1`

// DeleteWorkers deletes the rows of the workers in w that have given no sign since w was read, and returns
// their ids.
func DeleteWorkers(ctx context.Context, db DB, w []Worker) (deleted []int64, err error) {
	const del = `
delete from idem_workers w using unnest($1::bigint[], $2::timestamptz[]) as dead (id, seen_at)
where w.id = dead.id and w.seen_at = dead.seen_at
returning w.id`
	ids, seen := make([]int64, len(w)), make([]time.Time, len(w))
	for n, dead := range w {
		ids[n], seen[n] = dead.ID, dead.SeenAt
	}
	b := &pgx.Batch{}
	b.Queue(del, ids, seen).Query(func(rows pgx.Rows) (err error) {
		deleted, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	err = ReadCommitted(ctx, db, b)
	return deleted, err
}

// DeleteWorker deletes the row of a worker that has ended.
func DeleteWorker(ctx context.Context, db DB, id int64) error {
	b := &pgx.Batch{}
	b.Queue(`delete from idem_workers where id = $1`, id)
	return ReadCommitted(ctx, db, b)
}

// DeadSession is a session that processes an event for a worker that has no row any more.
type DeadSession struct {
	PID  int32
	Lock int64 // that names the worker
}

// FindDeadSessions returns the sessions that a marking statement of dead workers of a source has left: their
// process was killed, stopped or cut off, and Postgres, which has not noticed, keeps their events locked. The statement
// holds a shared lock that names its worker. One look at a time is made for a source.
func FindDeadSessions(ctx context.Context, db DB, source string) (dead []DeadSession, err error) {
	const find = `
select l.pid, l.objid::bigint from pg_locks l
where (select pg_try_advisory_xact_lock(hashtextextended($1, 'idem_workers'::regclass::oid::bigint)))
  and ` + workerLocks + ` and l.classid = (hashtext('idem_workers'::regclass::oid || $1)::bigint & 4294967295)
  and not exists (select from idem_workers w where (hashint8(w.id)::bigint & 4294967295) = l.objid::bigint)`
	rows, _ := db.Query(ctx, find, source)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DeadSession])
}

const workerLocks = `l.locktype = 'advisory' and l.mode = 'ShareLock' and l.objsubid = 2 and l.database = (select oid from pg_database where datname = current_database())`

// EndDeadSessions ends those of the sessions whose transaction is older than a time: a handler has ended by
// then, also one that is still calling others. hidden is the number of those that db's role may
// not see.
func EndDeadSessions(ctx context.Context, db DB, dead []DeadSession, older time.Duration) (ended, hidden int, err error) {
	const end = `
select count(*) filter (where a.xact_start < clock_timestamp() - $3::interval and pg_terminate_backend(a.pid)), count(*) filter (where a.xact_start is null)
from unnest($1::int[], $2::bigint[]) d (pid, lock) join pg_stat_activity a on a.pid = d.pid
where exists (select from pg_locks l where l.pid = d.pid and l.objid::bigint = d.lock and ` + workerLocks + `)`
	pids, locks := make([]int32, len(dead)), make([]int64, len(dead))
	for n, d := range dead {
		pids[n], locks[n] = d.PID, d.Lock
	}
	err = db.QueryRow(ctx, end, pids, locks, older).Scan(&ended, &hidden)
	return ended, hidden, err
}

// ListWorkers returns the workers of a source, also dead ones whose row nobody has deleted yet, the oldest first.
func ListWorkers(ctx context.Context, db DB, source string) ([]Worker, error) {
	rows, _ := db.Query(ctx, workers+` order by started_at, id`, source)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
}

// LivingWorkers returns the workers of a source that are alive, here or elsewhere, the oldest first.
func LivingWorkers(ctx context.Context, db DB, source string) ([]Worker, error) {
	rows, _ := db.Query(ctx, workers+` and seen_at between now() - $2::interval and now() + $2::interval order by started_at, id`, source, Alive)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
}

// Claimed names the worker that is processing an event.
type Claimed struct {
	At     time.Time // the time of the claim; zero if no worker has claimed the event
	Host   string    // the worker's host; "" if the worker's row is deleted
	PID    int
	Silent time.Duration // since the worker's last sign
	Alive  bool
}

// FindClaim returns the claim of an event, by its row key: the zero Claimed if no worker has claimed the
// event, or if it is not stored.
func FindClaim(ctx context.Context, db DB, key string) (c Claimed, err error) {
	const find = `
select e.claimed_at, coalesce(w.host, ''), coalesce(w.pid, 0), coalesce(now() - w.seen_at, interval '0'), coalesce(w.seen_at between now() - $2::interval and now() + $2::interval, false)
from idem_events e left join idem_workers w on w.id = e.claimed_by
where e.event = $1 and e.claimed_by is not null`
	rows, _ := db.Query(ctx, find, key, Alive)
	c, err = pgx.CollectOneRow(rows, pgx.RowToStructByPos[Claimed])
	if errors.Is(err, pgx.ErrNoRows) {
		return Claimed{}, nil
	}
	return c, err
}
