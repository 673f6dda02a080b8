package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// pruneBlocks is how much of a table one statement looks at: 1 MB, which is
// some 7,000 events.
const pruneBlocks = 128

// pruneRows is the same for a database without blocks.
const pruneRows = 7000

// PruneEvents deletes the done, unhandled and discarded events of a source that
// are older than age, and the parked ones that are older than parkedAge unless
// that is 0, with their bodies; held ones stay. It returns how many.
func PruneEvents(ctx context.Context, db DB, source string, age, parkedAge time.Duration) (deleted int64, err error) {
	prune := func(stretch string) string {
		return `
with old as materialized (
	select event from idem_events where ` + stretch + prunable + `
	for update skip locked
), gone as (
	delete from idem_events using old where ` + stretch + ` and idem_events.event = old.event
	returning old.event
), bodies as (
	delete from idem_payloads p using gone where p.event = gone.event
), archived as (
	delete from idem_archive a using gone where a.event = gone.event
)
select count(*) from gone`
	}
	return walk(ctx, db, "idem_events", prune, sourcePrefix(source), age, parkedAge)
}

// prunable is the condition of the old rows of a stretch of idem_events.
const prunable = `
	and starts_with(idem_events.event, $3)
	and (state in ('done', 'unhandled', 'discarded') and received_at < now() - $4::interval
	  or state = 'parked' and $5::interval > interval '0' and received_at < now() - $5::interval
	    and not exists (select from idem_payloads p where p.event = idem_events.event and p.held)) -- not tried yet`

// CountPrunable counts the events that PruneEvents would delete.
func CountPrunable(ctx context.Context, db DB, source string, age, parkedAge time.Duration) (int64, error) {
	count := func(stretch string) string { return `select count(*) from idem_events where ` + stretch + prunable }
	return walk(ctx, db, "idem_events", count, sourcePrefix(source), age, parkedAge)
}

// PruneArchive deletes kept bodies that are older than age, and those whose
// event is gone.
func PruneArchive(ctx context.Context, db DB, source string, age time.Duration) error {
	prune := func(stretch string) string {
		return `
with old as materialized (
	select event from idem_archive where ` + stretch + `
	  and starts_with(idem_archive.event, $3)
	  and ($4::interval > interval '0' and received_at < now() - $4::interval
	    or not exists (select from idem_events e where e.event = idem_archive.event))
	for update skip locked
), gone as (
	delete from idem_archive using old where ` + stretch + ` and idem_archive.event = old.event
	returning old.event
)
select count(*) from gone`
	}
	_, err := walk(ctx, db, "idem_archive", prune, sourcePrefix(source), age)
	return err
}

// Tidy puts right what people left who deleted or changed rows by hand: bodies
// whose event is gone or done are deleted, and the first event of each
// lane is due, unless it is parked by its own failure.
func Tidy(ctx context.Context, db DB, source string) error {
	const bodies = `
delete from idem_payloads p where source = $1
  and not exists (select from idem_events e where e.event = p.event and e.state not in ('done', 'discarded'))
  and received_at = (select began.received_at from idem_payloads began where began.event = p.event) -- not stored anew meanwhile`
	if _, err := db.Exec(ctx, bodies, source); err != nil {
		return err
	}
	_, err := PromoteStuck(ctx, db, source)
	return err
}

// walk runs a statement about one stretch of a table after the other, and adds up what
// it says. statement makes it from the condition of a stretch, which uses $1 and $2, and
// names the table without an alias.
//
// A stretch is some blocks, of each partition where the table has any. A row that
// moves to another stretch meanwhile may be missed: the next time it is not.
func walk(ctx context.Context, db DB, table string, statement func(stretch string) string, args ...any) (total int64, err error) {
	blocks, parts, err := sizeOf(ctx, db, table)
	if noBlocks(err) {
		return walkByKey(ctx, db, table, statement, args)
	}
	if err != nil {
		return 0, err
	}
	const ctid = `.ctid >= format('(%s,0)', $1::bigint)::tid and `
	query := statement(table + ctid + table + `.ctid < format('(%s,0)', $1::bigint + $2)::tid`)
	step := max(1, pruneBlocks/parts)
	for block := int64(0); block < blocks; block += step {
		var n int64
		if err := db.QueryRow(ctx, query, append([]any{block, step}, args...)...).Scan(&n); err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// sizeOf is how many blocks the largest partition of the table has, and how many
// partitions there are; of a plain table, its own and 1. It is an error where rows
// have no place.
func sizeOf(ctx context.Context, db DB, table string) (blocks, parts int64, err error) {
	const size = `
select coalesce(max(pg_relation_size(part)), 0) / current_setting('block_size')::bigint, count(*)
from (select $1::regclass as part where not exists (select from pg_partition_tree($1::regclass))
	union all select relid from pg_partition_tree($1::regclass) where isleaf) parts`
	if _, err := db.Exec(ctx, `select ctid from `+table+` limit 0`); err != nil {
		return 0, 0, err
	}
	err = db.QueryRow(ctx, size, table).Scan(&blocks, &parts)
	return blocks, parts, err
}

// noBlocks tells the error of a database, of Postgres's relatives, that has no
// ctid: there is no such column, or it is not supported.
func noBlocks(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "42703" || pgErr.Code == "0A000")
}

// walkByKey is walk along the primary key. On Postgres that would read a table of
// many rows in random order.
func walkByKey(ctx context.Context, db DB, table string, statement func(stretch string) string, args []any) (total int64, err error) {
	query := statement(table + `.event > $1 and ` + table + `.event <= $2`)
	next := `select coalesce(max(event), '') from (select event from ` + table + ` where event > $1 order by event limit $2) stretch`
	for after := ""; ; {
		var last string
		var n int64
		if err := db.QueryRow(ctx, next, after, pruneRows).Scan(&last); err != nil || last == "" {
			return total, err
		}
		if err := db.QueryRow(ctx, query, append([]any{after, last}, args...)...).Scan(&n); err != nil {
			return total, err
		}
		total += n
		after = last
	}
}
