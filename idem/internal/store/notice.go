package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// NoticeKey names a check of package health.
type NoticeKey struct{ Source, Name string }

// Notice is a row of idem_notices: a check that fails, or failed a moment ago, and whether somebody was told.
type Notice struct {
	NoticeKey
	Since, Seen time.Time // when it was first and last seen to fail
	Told        time.Time // zero: nobody was told
	Until       time.Time // the end of the reservation of a process that tells it; zero for none, and once it has told
}

// Reserved reports whether a process is telling the notice. A reservation that ends later than it can was made before
// the clock was put back.
func (n Notice) Reserved(now time.Time) bool {
	return n.Until.After(now) && !n.Until.After(now.Add(NoticeTime))
}

// NoticeTime is the time of a reservation. The next process may tell the notice after it.
const NoticeTime = time.Minute

// SeeNotices notes that the checks failing fail, that those of open are not known to be well, and what this process has
// told alone: told, by its clock. It forgets notices that nobody was told of, and that were last seen longer than quiet
// ago. It returns all others, and the database's time.
func SeeNotices(
	ctx context.Context, db DB, failing, open []NoticeKey, told []Notice, quiet time.Duration,
) (all []Notice, now time.Time, err error) {
	// First all locks, in one order for all processes.
	const lock = `select from idem_notices order by source, name for update`
	const add = `
insert into idem_notices as n (source, name, since_at, seen_at, told_at)
values ($1, $2, now() - $3::interval, now() - $4::interval, now() - $5::interval)
on conflict (source, name) do update set seen_at = greatest(n.seen_at, excluded.seen_at), told_at = greatest(n.told_at, excluded.told_at)`
	const see = `
insert into idem_notices as n (source, name, since_at, seen_at)
select source, name, now(), now() from unnest($1::text[], $2::text[]) as k (source, name) order by source collate "C", name collate "C"
on conflict (source, name) do update set seen_at = now(),
	since_at = case when n.told_at is null and n.until is null and n.seen_at < now() - $3::interval then now() else least(n.since_at, now()) end`
	const keep = `
update idem_notices n set seen_at = now() from unnest($1::text[], $2::text[]) as k (source, name) where n.source = k.source and n.name = k.name`
	const forget = `
delete from idem_notices where told_at is null and until is null and seen_at not between now() - $1::interval and now() + $1::interval`
	b := &pgx.Batch{}
	b.Queue(lock)
	for _, n := range told {
		b.Queue(add, n.Source, n.Name, time.Since(n.Since), time.Since(n.Seen), time.Since(n.Told))
	}
	sources, names := columnsOf(failing)
	b.Queue(see, sources, names, quiet)
	sources, names = columnsOf(open)
	b.Queue(keep, sources, names)
	b.Queue(forget, quiet)
	b.Queue(`select source, name, since_at, seen_at, told_at, until from idem_notices order by source, name`).Query(func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Notice, err error) {
			err = row.Scan(&n.Source, &n.Name, &n.Since, &n.Seen, orZero(&n.Told), orZero(&n.Until))
			return n, err
		})
		return err
	})
	// The transaction may have begun before the reservations that it sees: it has waited for their locks.
	b.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	err = ReadCommitted(ctx, db, b)
	return all, now, err
}

// columnsOf returns the columns of keys.
func columnsOf(keys []NoticeKey) (sources, names []string) {
	sources, names = make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		sources[i], names[i] = k.Source, k.Name
	}
	return sources, names
}

// ReserveNotice reserves a notice for this process, and returns the end of the reservation; ok is false if another
// process has reserved, told or ended it since it was read.
func ReserveNotice(ctx context.Context, db DB, n Notice) (until time.Time, ok bool, err error) {
	const reserve = `
update idem_notices set until = now() + $5::interval
where source = $1 and name = $2 and told_at is not distinct from $3 and until is not distinct from $4
returning until`
	args := []any{n.Source, n.Name, nullTime(n.Told), nullTime(n.Until), NoticeTime}
	err = readCommitted(ctx, db, reserve, args, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&until}, func() error { ok = true; return nil })
		return err
	})
	return until, ok && err == nil, err
}

// ConfirmNotice notes that somebody was told of a notice that this process has reserved: that its check fails or, if
// over is set, that it does no more.
func ConfirmNotice(ctx context.Context, db DB, n Notice, over bool) error {
	confirm := `update idem_notices set told_at = now(), until = null where source = $1 and name = $2 and until = $3`
	if over {
		confirm = `delete from idem_notices where source = $1 and name = $2 and until = $3`
	}
	b := &pgx.Batch{}
	b.Queue(confirm, n.Source, n.Name, n.Until)
	return ReadCommitted(ctx, db, b)
}
