package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

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

// Alive is the largest age of the sign of a living worker. It is for people and
// for code that does without workers: a claim ends when the worker's row is deleted.
const Alive = 12 * time.Second

// Sign writes a worker's sign of life, and returns the other workers of its source. The
// row is there before anything that the worker claims: a commit that is not waited for
// is on disk before a later one that is.
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

// DeleteWorkers deletes the rows of workers that have given no sign since w was read. It
// returns the ids of those.
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

// LivingWorkers returns the workers of a source that are alive, the oldest first.
func LivingWorkers(ctx context.Context, db DB, source string) ([]Worker, error) {
	rows, _ := db.Query(ctx, workers+` and seen_at between now() - $2::interval and now() + $2::interval order by started_at, id`, source, Alive)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Worker])
}

// HasWorkers reports whether workers of a source are alive, here or elsewhere.
func HasWorkers(ctx context.Context, db DB, source string) (yes bool, err error) {
	const alive = `select exists (select from idem_workers where source = $1 and seen_at between now() - $2::interval and now() + $2::interval)`
	err = db.QueryRow(ctx, alive, source, Alive).Scan(&yes)
	return yes, err
}

// Claimed names the worker that is processing an event.
type Claimed struct {
	At     time.Time // of the claim; zero when none holds the event
	Host   string    // of the worker; "" when it is dead, and its row is deleted
	PID    int
	Silent time.Duration // since the worker's last sign
	Alive  bool
}

// FindClaim returns the claim on an event, by its row key. An event that no worker
// has claimed, and one that is not there, has none.
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
