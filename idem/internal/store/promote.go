package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Promote makes the first event of a lane due, if it was held back. It is due from then
// on: claims that have looked further than to the begin of a long transaction would not
// see it. promoted, which may be nil, is set to whether it was held back.
func Promote(b *pgx.Batch, lane string, promoted *bool) {
	b.Queue(promote, lane).Exec(func(tag pgconn.CommandTag) error {
		if promoted != nil && tag.RowsAffected() > 0 {
			*promoted = true
		}
		return nil
	})
}

const promote = `
update idem_payloads set due_at = clock_timestamp()
where due_at is null and event = (select p.event from idem_payloads p where p.lane = $1 order by ` + order + ` limit 1)
  and (held or (select state from idem_events e where e.event = idem_payloads.event) = 'pending')`

// promoteHeld makes the first event of a lane due that was held back, whether or
// not it is the first of the lane: for a statement that takes an event out of its lane without
// being the only one there. While the first event is being processed, in a
// transaction that neither sees nor waits for this one, [promote] would come to
// nothing in both. It waits for the transaction that has locked the row.
const promoteHeld = `
update idem_payloads set due_at = clock_timestamp()
where event = (
	select p.event from idem_payloads p
	where p.lane = $1 and p.due_at is null and (p.held or (select state from idem_events e where e.event = p.event) = 'pending')
	order by ` + order + ` limit 1)`

// PromoteHeld makes the first event of each lane due that was held back, whether or
// not it is the first of the lane. A transaction that lasts, and takes rows out that
// are not the first, has it executed once more when it is committed: a promotion may
// have chosen one of them, and come to nothing.
func PromoteHeld(ctx context.Context, db DB, lanes []string) error {
	b := &pgx.Batch{}
	for _, lane := range lanes {
		b.Queue(promoteHeld, lane)
	}
	return db.SendBatch(ctx, b).Close()
}

// PromoteStuck makes events due that are held back behind nothing, and returns how
// many. By the rules of this package there are none at Postgres's default
// isolation; at stricter ones, where people change rows, and where [PruneEvents] has
// deleted the first of a lane, there may be.
func PromoteStuck(ctx context.Context, db DB, source string) (n int64, err error) {
	const promote = `update idem_payloads set due_at = now() where event in (select own.event ` + stuck + ` for update skip locked)`
	b := &pgx.Batch{}
	b.Queue(promote, source).Exec(func(tag pgconn.CommandTag) error { n = tag.RowsAffected(); return nil })
	err = ReadCommitted(ctx, db, b)
	return n, err
}

// stuck are the events that are held back behind nothing. The first of a lane is looked
// up in its index: for "not exists an earlier one" Postgres, while it has no statistics
// of the table, compares all with all.
const stuck = `
	from idem_payloads own
	where source = $1 and lane is not null and due_at is null
	  and (held or (select state from idem_events e where e.event = own.event) = 'pending')
	  and event = (select p.event from idem_payloads p where p.lane = own.lane order by ` + order + ` limit 1)`

// CountStuck counts the events that PromoteStuck would make due.
func CountStuck(ctx context.Context, db DB, source string) (n int64, err error) {
	err = db.QueryRow(ctx, `select count(*) `+stuck, source).Scan(&n)
	return n, err
}
