package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pruneBlocks is the part of a table that one statement looks at: 1 MB, which is
// some 7,000 events.
const pruneBlocks = 128

// pruneRows is the number of rows instead, for a database without blocks.
const pruneRows = 7000

// arrivalDay is the day on which a row's event arrived, in UTC.
const arrivalDay = `(received_at at time zone 'UTC')::date`

// closed are the states in which an event needs nothing more.
const closed = `state in ('done', 'unhandled', 'discarded')`

// DayOf counts the events of a source that arrived on a day.
type DayOf struct {
	Day                    time.Time // the begin of the day, in UTC
	Events, Closed, Parked int64     // all events; done, unhandled and discarded ones; parked ones
}

// CountDays counts the events of a source by the day on which they arrived.
func CountDays(ctx context.Context, db DB, source string) (map[time.Time]DayOf, error) {
	count := func(stretch string) string {
		return `
select ` + arrivalDay + ` as day, count(*), count(*) filter (where ` + closed + `), count(*) filter (where state = 'parked')
from idem_events where ` + stretch + ` and starts_with(idem_events.event, $3) group by day`
	}
	days := map[time.Time]DayOf{}
	var d DayOf
	err := walk(ctx, db, "idem_events", count, []any{&d.Day, &d.Events, &d.Closed, &d.Parked}, func() {
		sum := days[d.Day]
		days[d.Day] = DayOf{d.Day, sum.Events + d.Events, sum.Closed + d.Closed, sum.Parked + d.Parked}
	}, sourcePrefix(source))
	return days, err
}

// PruneEvents deletes the done, unhandled and discarded events of a source that arrived on the days closedOf,
// and the parked events of the days parkedOf, with their bodies. It returns the number of deleted events by
// day.
func PruneEvents(ctx context.Context, db DB, source string, closedOf, parkedOf []time.Time) (map[time.Time]int64, error) {
	prune := func(stretch string) string {
		return `
with old as materialized (
	select event from idem_events where ` + stretch + ` and starts_with(idem_events.event, $3)
	  and (` + closed + ` and ` + arrivalDay + ` = any ($4::date[]) or state = 'parked' and ` + arrivalDay + ` = any ($5::date[]))
	for update skip locked
), gone as (
	delete from idem_events using old where ` + stretch + ` and idem_events.event = old.event
	returning old.event, ` + arrivalDay + ` as day
), bodies as (
	delete from idem_payloads p using gone where p.event = gone.event
), archived as (
	delete from idem_archive a using gone where a.event = gone.event
)
select day, count(*) from gone group by day`
	}
	deleted := map[time.Time]int64{}
	var day time.Time
	var n int64
	err := walk(ctx, db, "idem_events", prune, []any{&day, &n}, func() { deleted[day] += n }, sourcePrefix(source), closedOf, parkedOf)
	return deleted, err
}

// PruneArchive deletes the archived bodies of events that arrived on the days of, and the bodies of deleted
// events.
func PruneArchive(ctx context.Context, db DB, source string, of []time.Time) error {
	prune := func(stretch string) string {
		return `
with old as materialized (
	select event from idem_archive where ` + stretch + `
	  and starts_with(idem_archive.event, $3)
	  and (` + arrivalDay + ` = any ($4::date[])
	    or not exists (select from idem_events e where e.event = idem_archive.event))
	for update skip locked
), gone as (
	delete from idem_archive using old where ` + stretch + ` and idem_archive.event = old.event
	returning old.event
)
select count(*) from gone`
	}
	return walk(ctx, db, "idem_archive", prune, []any{new(int64)}, func() {}, sourcePrefix(source), of)
}

// PruneAudit deletes a source's actions that began before a time.
func PruneAudit(ctx context.Context, db DB, source string, before time.Time) error {
	_, err := db.Exec(ctx, `delete from idem_audit where source = $1 and at < $2`, source, before)
	return err
}

// PruneRuns holds the counts of earlier runs of Prune for a source.
type PruneRuns struct {
	Runs   int64     // 0 if there was none
	RanAt  time.Time // the latest run that came a day after another
	Before time.Time // the run before that; zero if there was none
	Days   map[string]PrunedDay
}

// PrunedDay counts the events that arrived on a day.
type PrunedDay struct {
	Events int64     `json:"events"`           // events that Prune has left
	LateAt time.Time `json:"late_at,omitzero"` // when the day suddenly had more events
}

// FindPruneRuns reads the row of a source, and the database's clock.
func FindPruneRuns(ctx context.Context, db DB, source string) (r PruneRuns, now time.Time, err error) {
	const find = `
select now(), coalesce(runs, 0), ran_at, before_at, coalesce(days::text, '{}') from (select) one left join idem_prunes on source = $1`
	var days []byte
	if err = db.QueryRow(ctx, find, source).Scan(&now, &r.Runs, orZero(&r.RanAt), orZero(&r.Before), &days); err != nil {
		return r, now, err
	}
	return r, now, json.Unmarshal(days, &r.Days)
}

// FindUnpruned returns the age of an event that is done and older than a time, and that of the last run of Prune, 0 if
// there was none; oldest is 0 if Prune ran lately, or if none of 100,000 events, whichever Postgres finds first, is as
// old.
func FindUnpruned(ctx context.Context, db DB, source string, older, lately time.Duration) (ran, oldest time.Duration, err error) {
	const find = `
select coalesce(now() - ran_at, '0'), coalesce((
	select now() - min(received_at) from (select received_at, state from idem_events where event >= $1 || '/' and event < $1 || '0' limit 100000) e
	where ` + closed + ` and received_at < now() - $2::interval and coalesce(ran_at, '-infinity') < now() - $3::interval), '0')
from (select) one left join idem_prunes on source = $1`
	err = db.QueryRow(ctx, find, source, older, lately).Scan(&ran, &oldest)
	return ran, oldest, err
}

// SavePruneRuns writes the row of a source as run number r.Runs. It returns false if another process has
// written that run.
func SavePruneRuns(ctx context.Context, db DB, source string, r PruneRuns) (saved bool, err error) {
	const save = `
insert into idem_prunes as p (source, runs, ran_at, before_at, days) values ($1, $2, $3, $4, $5)
on conflict (source) do update set runs = excluded.runs, ran_at = excluded.ran_at, before_at = excluded.before_at, days = excluded.days
where p.runs = excluded.runs - 1`
	days, err := json.Marshal(r.Days)
	if err != nil {
		return false, err
	}
	tag, err := db.Exec(ctx, save, source, r.Runs, r.RanAt, nullTime(r.Before), string(days)) // as text, for every mode of pgx
	return tag.RowsAffected() == 1, err
}

// Tidy repairs the traces of rows that were deleted or changed by hand: it deletes the bodies of deleted or
// done events, and makes the first event of each lane due, unless the event is parked by its own failure.
func Tidy(ctx context.Context, db DB, source string) error {
	const bodies = `
delete from idem_payloads p where source = $1
  and not exists (select from idem_events e where e.event = p.event and e.state not in ('done', 'discarded'))
  and received_at = (select began.received_at from idem_payloads began where began.event = p.event) -- not stored anew meanwhile`
	if _, err := db.Exec(ctx, bodies, source); err != nil {
		return err
	}
	_, err := PromoteStuck(ctx, db, source, true)
	return err
}

// walk executes a statement for one stretch of a table after another. It reads each row of a result into
// scans and calls add. statement returns the statement for the condition of a stretch, which uses $1 and $2,
// and names the table without an alias.
//
// A stretch is a range of blocks, in each partition if the table has partitions. A row that moves to another
// stretch meanwhile may be missed until the next walk.
func walk(ctx context.Context, db DB, table string, statement func(stretch string) string, scans []any, add func(), args ...any) error {
	blocks, parts, err := sizeOf(ctx, db, table)
	if noBlocks(err) {
		return walkByKey(ctx, db, table, statement, scans, add, args)
	}
	if err != nil {
		return err
	}
	const ctid = `.ctid >= format('(%s,0)', $1::bigint)::tid and `
	query := statement(table + ctid + table + `.ctid < format('(%s,0)', $1::bigint + $2)::tid`)
	step := max(1, pruneBlocks/parts)
	for block := int64(0); block < blocks; block += step {
		if err := readStretch(ctx, db, query, scans, add, append([]any{block, step}, args...)); err != nil {
			return err
		}
	}
	return nil
}

// stretchTime is the time that a statement about one stretch may take.
const stretchTime = time.Minute

func readStretch(ctx context.Context, db DB, query string, scans []any, add func(), args []any) error {
	ctx, cancel := context.WithTimeout(ctx, stretchTime)
	defer cancel()
	rows, _ := db.Query(ctx, query, args...)
	_, err := pgx.ForEachRow(rows, scans, func() error { add(); return nil })
	return err
}

// sizeOf returns the number of blocks of the table's largest partition, and the number of partitions; for a
// plain table, its number of blocks and 1. It returns an error if rows have no ctid.
func sizeOf(ctx context.Context, db DB, table string) (blocks, parts int64, err error) {
	const size = `
select coalesce(max(pg_relation_size(part)), 0) / current_setting('block_size')::bigint, count(*)
from (select $1::regclass as part where not exists (select from pg_partition_tree($1::regclass))
	union all select relid from pg_partition_tree($1::regclass) where isleaf) parts`
	ctx, cancel := context.WithTimeout(ctx, stretchTime)
	defer cancel()
	if _, err := db.Exec(ctx, `select ctid from `+table+` limit 0`); err != nil {
		return 0, 0, err
	}
	err = db.QueryRow(ctx, size, table).Scan(&blocks, &parts)
	return blocks, parts, err
}

// noBlocks reports whether err shows that the database, a relative of Postgres, has no ctid, or does not
// support it.
func noBlocks(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "42703" || pgErr.Code == "0A000")
}

// walkByKey is walk along the primary key. On Postgres it would read a large table in random order.
func walkByKey(ctx context.Context, db DB, table string, statement func(stretch string) string, scans []any, add func(), args []any) error {
	query := statement(table + `.event > $1 and ` + table + `.event <= $2`)
	next := `select coalesce(max(event), '') from (select event from ` + table + ` where event > $1 order by event limit $2) stretch`
	for after := ""; ; {
		var last string
		if err := readStretch(ctx, db, next, []any{&last}, func() {}, []any{after, pruneRows}); err != nil || last == "" {
			return err
		}
		if err := readStretch(ctx, db, query, scans, add, append([]any{after, last}, args...)); err != nil {
			return err
		}
		after = last
	}
}
