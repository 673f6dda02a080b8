package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Worker is a row of idem_workers: one runner, in one process, which claims events of one source.
type Worker struct {
	ID        int64
	Source    string
	Host      string
	PID       int
	StartedAt time.Time
	SeenAt    time.Time
	Silent    time.Duration // since SeenAt, by the database's clock, which may have been put back
	Replays   bool          // it claims the events of a replay, and none that is due
}

// Alive reports whether the worker's last sign of life is recent.
func (w Worker) Alive() bool { return w.Silent.Abs() <= Alive }

// Alive is the largest age of a living worker's last sign. It is for people, and for code outside of workers:
// a claim ends only when the worker's row is deleted.
const Alive = 12 * time.Second

// Sign writes a worker's sign of life, and returns the other workers of its source. The commit does not wait
// for the disk: it is on disk before any later claim of the worker, which does.
func Sign(ctx context.Context, db DB, w Worker, running time.Duration) (others []Worker, err error) {
	const sign = `
insert into idem_workers as w (id, source, host, pid, started_at, seen_at, replays) values ($1, $2, $3, $4, now() - $5::interval, now(), $6)
on conflict (id) do update set seen_at = excluded.seen_at`
	b := &pgx.Batch{}
	b.Queue(`select set_config('synchronous_commit', 'off', true)`)
	b.Queue(sign, w.ID, w.Source, w.Host, w.PID, running, w.Replays)
	b.Queue(workers+` and id <> $2`, w.Source, w.ID).Query(func(rows pgx.Rows) (err error) {
		others, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
		return err
	})
	err = ReadCommitted(ctx, db, b)
	return others, err
}

const workers = `
select id, source, host, pid, started_at, seen_at, now() - seen_at, replays from idem_workers where source = $1`

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

// ListWorkers returns the workers of a source that claim what is due, also dead ones whose row nobody has deleted
// yet, the oldest first.
func ListWorkers(ctx context.Context, db DB, source string) ([]Worker, error) {
	rows, _ := db.Query(ctx, workers+` and not replays order by started_at, id`, source)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
}

// LivingWorkers returns the workers of a source that claim what is due and are alive, here or elsewhere, the oldest
// first.
func LivingWorkers(ctx context.Context, db DB, source string) ([]Worker, error) {
	rows, _ := db.Query(ctx, workers+` and not replays and seen_at between now() - $2::interval and now() + $2::interval order by started_at, id`, source, Alive)
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
