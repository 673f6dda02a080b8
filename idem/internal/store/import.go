package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Import stores events as done of which only the names are known, and when they came: at
// zero, now. Those that are stored are left. It returns how many were not.
func Import(ctx context.Context, db DB, events []Event, times []time.Time) (stored int64, err error) {
	const add = `
insert into idem_events (event, type, key, state, received_at)
select distinct on (event) event, type, key, 'done', least(coalesce(at, now()), now())
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as i (event, type, key, at)
where not exists (select from idem_events e where e.event = i.event) -- else it waits for the handler of one that is being processed
order by event, at desc nulls first -- in one order, so that two imports do not lock each other out
on conflict do nothing`
	known := make([]*time.Time, len(times))
	keys, types, entities := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	for n, e := range events {
		keys[n], types[n], entities[n], known[n] = e.RowKey(), e.Type, e.Key, nullTime(times[n])
	}
	b := &pgx.Batch{}
	b.Queue(add, keys, types, entities, known).Exec(func(tag pgconn.CommandTag) error {
		stored = tag.RowsAffected()
		return nil
	})
	err = ReadCommitted(ctx, db, b)
	return stored, err
}

// Complete makes events done that another program has done, those that are waiting, and not
// being processed, and records that on an action. It returns their row keys, and their
// lanes for [PromoteHeld].
func Complete(ctx context.Context, tx pgx.Tx, action int64, keys []string, archive bool) (completed, lanes []string, err error) {
	const complete = `
with chosen as (
	select event from idem_events e
	where event = any ($1) and state not in ('done', 'discarded') and not exists (select from idem_workers w where w.id = e.claimed_by)
	order by event for update skip locked
), completed as (
	update idem_events e set state = 'done', last_error = null, done_at = now(), claimed_at = null, claimed_by = null
	from chosen where e.event = chosen.event
	returning e.event, ` + onDisk + `
), bodies as (
	delete from idem_payloads p using completed c where p.event = c.event returning p.*
), kept as (
	insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from bodies where $2
	on conflict do nothing
), noted as (
	insert into idem_audit_events (action, event, result) select $3, event, 'imported' from completed
	on conflict (event, action) do update set result = excluded.result, at = excluded.at
)
select c.event, coalesce(b.lane, '') from completed c left join bodies b using (event)`
	rows, _ := tx.Query(ctx, complete, keys, archive, action)
	var event, lane string
	_, err = pgx.ForEachRow(rows, []any{&event, &lane}, func() error {
		completed, lanes = append(completed, event), append(lanes, lane)
		return nil
	})
	return completed, lanes, err
}

// CountLeft counts the events that are discarded, and those that are not done.
func CountLeft(ctx context.Context, db DB, keys []string) (discarded, open int64, err error) {
	const count = `
select count(*) filter (where state = 'discarded'), count(*) filter (where state not in ('done', 'discarded'))
from idem_events where event = any ($1)`
	err = db.QueryRow(ctx, count, keys).Scan(&discarded, &open)
	return discarded, open, err
}
