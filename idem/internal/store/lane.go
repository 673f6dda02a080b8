package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Promote makes the first event of a lane due, if the event was held back. due_at is set with
// clock_timestamp, not now: a claim's position may already be past the start of a long transaction. promoted
// is set if the event was held back.
func Promote(b *pgx.Batch, lane string, promoted *bool) {
	b.Queue(promote, lane).Exec(func(tag pgconn.CommandTag) error {
		*promoted = *promoted || tag.RowsAffected() > 0
		return nil
	})
}

const promote = `
update idem_payloads set due_at = clock_timestamp()
where due_at is null and event = (select p.event from idem_payloads p where p.lane = $1 order by ` + order + ` limit 1)
  and (select state from idem_events e where e.event = idem_payloads.event) = 'pending'`

// PromoteWaiting makes the first event of each lane due that was held back, whether or not it is the first of
// the lane. After a long transaction that takes out rows that are not the first, execute PromoteWaiting once
// more: a promotion in another transaction may have chosen one of those rows, and come to nothing.
func PromoteWaiting(ctx context.Context, db DB, lanes []string) error {
	b := &pgx.Batch{}
	for _, lane := range lanes {
		b.Queue(promoteWaiting, lane)
	}
	return db.SendBatch(ctx, b).Close()
}

// promoteWaiting makes the first event of a lane due that was held back, whether or not it is the first of the
// lane: for a statement that takes an event out of a lane in which another transaction may be working. While
// that one processes the first event, and neither sees nor waits for this one, [promote] would come to
// nothing in both. promoteWaiting waits for the transaction that has locked the row.
const promoteWaiting = `
update idem_payloads set due_at = clock_timestamp()
where event = (
	select p.event from idem_payloads p
	where p.lane = $1 and p.due_at is null and (select state from idem_events e where e.event = p.event) = 'pending'
	order by ` + order + ` limit 1)`

// PromoteStuck makes events due that are held back behind nothing, and returns how
// many. By the rules of this package there are none at Postgres's default
// isolation; at stricter ones, where people change rows, and where [PruneEvents] has
// deleted the first of a lane, there may be.
//
// One look at a time is made for a source: without wait, a second one finds nothing.
func PromoteStuck(ctx context.Context, db DB, source string, wait bool) (n int64, err error) {
	const turn = `advisory_xact_lock(hashtextextended($1, 'idem_payloads'::regclass::oid::bigint))`
	const promote = stuck + `
update idem_payloads set due_at = now() where event in (
	select own.event from idem_payloads own
	where (select pg_try_` + turn + `) and own.event = any (array(select event from stuck)) and own.due_at is null
	for update skip locked)`
	b := &pgx.Batch{}
	b.Queue(`select set_config('enable_seqscan', 'off', true)`) // as of claimSettings
	if wait {
		b.Queue(`select pg_`+turn, source)
	}
	b.Queue(promote, source).Exec(func(tag pgconn.CommandTag) error { n = tag.RowsAffected(); return nil })
	err = ReadCommitted(ctx, db, b)
	return n, err
}

// stuck are the events that are held back behind nothing: the first ones of the lanes in which
// any event waits. It passes from lane to lane along an index, however many wait in each.
const stuck = `
with recursive lanes as (
	(select p.lane from idem_payloads p where p.source = $1 and p.lane is not null and p.due_at is null order by p.lane limit 1)
	union all
	select (select p.lane from idem_payloads p where p.source = $1 and p.lane > lanes.lane and p.due_at is null order by p.lane limit 1)
	from lanes where lanes.lane is not null
), stuck as (
	select head.event from lanes cross join lateral (
		select p.event, p.due_at from idem_payloads p where p.lane = lanes.lane order by ` + order + ` limit 1) head
	where head.due_at is null and (select state from idem_events e where e.event = head.event) = 'pending'
)`

// CountStuck counts the events that PromoteStuck would make due.
func CountStuck(ctx context.Context, db DB, source string) (n int64, err error) {
	err = db.QueryRow(ctx, stuck+` select count(*) from stuck`, source).Scan(&n)
	return n, err
}

// Pass takes up to n parked events out of their lanes. It returns their lanes, for
// [PromoteWaiting].
func Pass(ctx context.Context, tx pgx.Tx, source string, n int) (lanes []string, err error) {
	const pass = `
with chosen as materialized (
	select event from idem_events where event = any (array(
		select p.event from idem_payloads p ` + openEvent + `
		where p.source = $1 and p.lane is not null and p.due_at is null and e.state = 'parked' limit $2))
	  and state = 'parked' order by event for update skip locked
), lanes as materialized (
	select p.event, p.lane from idem_payloads p join chosen using (event) where p.lane is not null
), passed as (
	update idem_payloads p set lane = null from lanes where p.event = lanes.event
	returning p.event
)
select lane from lanes join passed using (event)`
	rows, _ := tx.Query(ctx, pass, source, n)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Blocked is the first event of a lane, and other events wait for it.
type Blocked struct {
	Event
	State     string // "" if its row is gone
	LastError string
	Age       time.Duration
	DueAt     time.Time
	Waiting   int64
}

// CountBehind counts the events that are pending behind some, and are none of them.
func CountBehind(ctx context.Context, db DB, keys []string) (n int64, err error) {
	const count = `
with chosen as materialized (
	select p.event, p.lane, coalesce(p.occurred_at, p.received_at) as at, p.received_at from idem_payloads p join unnest($1::text[]) as k (event) using (event)
	where p.lane is not null
), lanes as materialized (
	select distinct on (lane) * from chosen order by lane, at, received_at, event
)
select count(*) from lanes l join idem_payloads p on p.lane = l.lane and (` + order + `) > (l.at, l.received_at, l.event)
join idem_events e on e.event = p.event
where e.state = 'pending' and not exists (select from chosen c where c.event = p.event)`
	err = db.QueryRow(ctx, count, keys).Scan(&n)
	return n, err
}

// heads are the first events of lanes, each with the number of those that wait behind it.
const heads = `
from (
	select distinct on (p.lane) p.lane, p.event, p.due_at, p.received_at, count(*) over (partition by p.lane) - 1 as waiting
	from idem_payloads p
	where p.lane is not null and p.source = $1
	order by p.lane, ` + order + `
) p left join lateral (select * from idem_events where event = p.event offset 0) e on true`

// blocked are the heads of lanes in which events wait.
const blocked = heads + `
where p.waiting > 0 and (e.state is distinct from 'pending' or p.due_at is null or p.due_at > now())`

// BlockedSum counts all entities that are blocked, and the events that wait in them.
type BlockedSum struct{ Entities, Waiting int64 }

// ListBlocked lists the lanes of a source in which events wait for an event that is not due: the event is
// parked, waits for its next attempt, or its row is gone. It reads the n oldest lanes, and counts all.
func ListBlocked(ctx context.Context, db DB, source string, n int) (oldest []Blocked, all BlockedSum, err error) {
	const list = `
select p.event, coalesce(e.type, ''), coalesce(e.key, ''), coalesce(e.state, ''), coalesce(e.last_error, ''),
	now() - p.received_at, p.due_at, p.waiting, count(*) over (), sum(p.waiting) over ()::bigint ` + blocked + ` order by p.received_at, p.event limit $2`
	rows, _ := db.Query(ctx, list, source, n)
	oldest, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocked, err error) {
		var key string
		err = row.Scan(&key, &b.Type, &b.Key, &b.State, &b.LastError, &b.Age, orZero(&b.DueAt), &b.Waiting, &all.Entities, &all.Waiting)
		b.setRowKey(key)
		return b, err
	})
	return oldest, all, err
}

// Overtaken is an event with a later event in its lane that was done before.
type Overtaken struct {
	Event Event // only its names; the same for By
	By    Event // the last of its lane that was done before it
	More  int   // others
}

// FindOvertaken finds the events, among keys, with a later event in their lane that was done before. They are
// sorted as lanes are. It reads the whole of idem_events, unless the table has an index that begins with key.
func FindOvertaken(ctx context.Context, db DB, keys []string) ([]Overtaken, error) {
	const place = `
select e.event, e.type, e.key, substring(e.event from '^[^/]*/[^/]*/') as account,
	coalesce(e.occurred_at, e.received_at) as at, e.received_at, coalesce(e.done_at, e.received_at) as done_at, e.state
from idem_events e `
	const find = `
with own as materialized (` + place + `join unnest($1::text[]) as k (event) using (event) where e.key <> ''),
later as materialized (` + place + `join (select distinct key from own) k using (key) where e.state = 'done')
select * from (
	select distinct on (own.at, own.received_at, own.event) own.event, own.type, own.key, later.event, later.type, later.key,
		count(*) over (partition by own.event) - 1
	from own join later on later.key = own.key and later.account = own.account
		and (later.at, later.received_at, later.event) > (own.at, own.received_at, own.event)
		and (own.state <> 'done' or later.done_at < own.done_at)
	order by own.at, own.received_at, own.event, later.at desc, later.received_at desc, later.event desc
) found`
	rows, _ := db.Query(ctx, find, keys)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Overtaken, err error) {
		var own, by string
		err = row.Scan(&own, &o.Event.Type, &o.Event.Key, &by, &o.By.Type, &o.By.Key, &o.More)
		o.Event.setRowKey(own)
		o.By.setRowKey(by)
		return o, err
	})
}
