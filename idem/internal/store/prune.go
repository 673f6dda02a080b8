package store

import (
	"context"
	"time"
)

// pruneBlocks is how much of a table one statement looks at: 1 MB, which is
// some 7,000 events.
const pruneBlocks = 128

// PruneEvents deletes the done, unhandled and discarded events of a source that
// are older than age, and the parked ones that are older than parkedAge unless
// that is 0, with their bodies. It returns how many.
func PruneEvents(ctx context.Context, db DB, source string, age, parkedAge time.Duration) (deleted int64, err error) {
	const events = `
with old as (
	delete from idem_events where ctid = any (array(
		select ctid from idem_events
		where ` + prunable + `
		for update skip locked))
	returning event
), bodies as (
	delete from idem_payloads p using old where p.event = old.event
), archived as (
	delete from idem_archive a using old where a.event = old.event
)
select count(*) from old`
	return walk(ctx, db, "idem_events", events, sourcePrefix(source), age, parkedAge)
}

// prunable is the condition of the old rows of a stretch of idem_events.
const prunable = `
ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1::bigint + $2)::tid
		  and starts_with(event, $3)
		  and (state in ('done', 'unhandled', 'discarded') and received_at < now() - $4::interval
		    or state = 'parked' and $5::interval > interval '0' and received_at < now() - $5::interval)`

// CountPrunable counts the events that PruneEvents would delete.
func CountPrunable(ctx context.Context, db DB, source string, age, parkedAge time.Duration) (int64, error) {
	const count = `select count(*) from idem_events where ` + prunable
	return walk(ctx, db, "idem_events", count, sourcePrefix(source), age, parkedAge)
}

// PruneArchive deletes kept bodies that are older than age, and those whose
// event is gone.
func PruneArchive(ctx context.Context, db DB, source string, age time.Duration) error {
	const archived = `
with old as (
	delete from idem_archive where ctid = any (array(
		select ctid from idem_archive a
		where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1::bigint + $2)::tid
		  and starts_with(event, $3)
		  and ($4::interval > interval '0' and received_at < now() - $4::interval
		    or not exists (select from idem_events e where e.event = a.event))
		for update skip locked))
	returning event
)
select count(*) from old`
	_, err := walk(ctx, db, "idem_archive", archived, sourcePrefix(source), age)
	return err
}

// Tidy puts right what people left who deleted or changed rows by hand: bodies
// whose event is gone or done are deleted, and the first pending event of each
// lane is due.
func Tidy(ctx context.Context, db DB, source string) error {
	const bodies = `
delete from idem_payloads p where source = $1
  and not exists (select from idem_events e where e.event = p.event and e.state not in ('done', 'discarded'))`
	if _, err := db.Exec(ctx, bodies, source); err != nil {
		return err
	}
	_, err := PromoteStuck(ctx, db, source)
	return err
}

// PromoteStuck makes events due that are held back behind nothing, and returns how
// many. By the rules of this package there are none at Postgres's default
// isolation; at stricter ones, and where people change rows, there may be.
func PromoteStuck(ctx context.Context, db DB, source string) (int64, error) {
	const promote = `update idem_payloads set due_at = now() where event in (select own.event ` + stuck + ` for update skip locked)`
	tag, err := db.Exec(ctx, promote, source)
	return tag.RowsAffected(), err
}

// stuck are the events that are held back behind nothing.
const stuck = `
	from idem_payloads own
	where source = $1 and lane is not null and due_at is null
	  and (select state from idem_events e where e.event = own.event) = 'pending'
	  and not exists (
		select from idem_payloads p where p.lane = own.lane
		  and (` + order + `) < (coalesce(own.occurred_at, own.received_at), own.received_at, own.event))`

// CountStuck counts the events that PromoteStuck would make due.
func CountStuck(ctx context.Context, db DB, source string) (n int64, err error) {
	err = db.QueryRow(ctx, `select count(*) `+stuck, source).Scan(&n)
	return n, err
}

// walk runs a statement for each stretch of a table, and adds up what it says.
func walk(ctx context.Context, db DB, table, statement string, args ...any) (total int64, err error) {
	var blocks, n int64
	const size = `select pg_relation_size($1::regclass) / current_setting('block_size')::bigint`
	if err := db.QueryRow(ctx, size, table).Scan(&blocks); err != nil {
		return 0, err
	}
	for block := int64(0); block < blocks; block += pruneBlocks {
		args := append([]any{block, pruneBlocks}, args...)
		if err := db.QueryRow(ctx, statement, args...).Scan(&n); err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
