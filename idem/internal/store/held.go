package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// FindHeld finds held events that are due after a place, and returns up to n
// row keys and the place of the last one. One that is due and not the first of its lane,
// because it was promoted when another was taken out, waits again.
func FindHeld(ctx context.Context, db DB, source string, after Place, n int) (keys []string, last Place, err error) {
	const find = `
with due as materialized (
	select p.event, p.lane, p.due_at from idem_payloads p
	where p.source = $1 and p.held and coalesce(p.due_at, 'infinity') <= now()
	  and (coalesce(p.due_at, 'infinity'), p.event) > (coalesce($2::timestamptz, '-infinity'), $3)
	order by coalesce(p.due_at, 'infinity'), p.event limit $4
), heads as materialized (
	select due.*, head.event as head from due cross join lateral (
		select p.event from idem_payloads p where p.lane = due.lane order by ` + order + ` limit 1) head
), locked as materialized (
	select p.event from idem_payloads p
	where p.event = any (array(select head from heads where head <> event)) and coalesce(p.lane, '') <> ''
	for update skip locked
), later as (
	update idem_payloads p set due_at = null from heads join locked on locked.event = heads.head
	where p.event = heads.event and p.held
)
select event, due_at, head = event from heads order by due_at, event`
	last = after
	err = readCommitted(ctx, db, find, []any{source, nullTime(after.At), after.Event, n}, func(rows pgx.Rows) error {
		first := false
		_, err := pgx.ForEachRow(rows, []any{&last.Event, &last.At, &first}, func() error {
			if first {
				keys = append(keys, last.Event)
			}
			return nil
		})
		return err
	})
	return keys, last, err
}

var endHeld = `
with ended as (
	update idem_events e set state = $2, last_error = $3
	where event = $1 and state = 'parked' and exists (select from idem_payloads own where own.event = $1
		and case when own.held then own.event = (select p.event from idem_payloads p where p.lane = own.lane order by ` + order + ` limit 1)
			else $2 = 'parked' end)
	returning event, ` + onDisk + `
)
update idem_payloads p set held = false, due_at = null, lane = case when $4 then null else lane end,
	failures = ` + failuresAnd("$3") + `
from ended where p.event = ended.event`

// EndHeld ends the turn of a held event with a handler that was not found, or not called: it is
// unhandled, or parked by its own failure. Unhandled, or with pass, it leaves its lane, and
// the events behind it go on. It changes nothing of an event that waits. Of a parked one that
// is not held it records that it failed again.
func EndHeld(ctx context.Context, db DB, e Event, state string, lastError *string, pass bool) error {
	leaves := pass || state == Unhandled
	b := &pgx.Batch{}
	b.Queue(endHeld, e.RowKey(), state, lastError, leaves)
	if leaves {
		b.Queue(promoteHeld, e.Lane())
	}
	return ReadCommitted(ctx, db, b)
}

// Adopt makes held events pending that are due, for workers, and returns how many.
func Adopt(ctx context.Context, db DB, source string) (adopted int64, err error) {
	const adopt = `
with due as (
	select event from idem_events where event = $1 and state = 'parked' for update skip locked
), again as (
	update idem_events e set state = 'pending' from due where e.event = due.event
	returning e.event, ` + onDisk + `
)
update idem_payloads p set held = false from again where p.event = again.event`
	for last := (Place{}); ; {
		keys, next, err := FindHeld(ctx, db, source, last, 100)
		if err != nil || next == last {
			return adopted, err
		}
		last = next
		b := &pgx.Batch{}
		for _, key := range keys {
			b.Queue(adopt, key).Exec(func(tag pgconn.CommandTag) error {
				adopted += tag.RowsAffected()
				return nil
			})
		}
		if err := ReadCommitted(ctx, db, b); err != nil {
			return adopted, err
		}
	}
}

// Pass takes up to n events that are parked, and not held, out of their lanes. It returns
// the lane of each, for [PromoteHeld].
func Pass(ctx context.Context, tx pgx.Tx, source string, n int) (lanes []string, err error) {
	const pass = `
with chosen as materialized (
	select event from idem_events where event = any (array(
		select p.event from idem_payloads p ` + openEvent + `
		where p.source = $1 and p.lane is not null and p.due_at is null and not p.held and e.state = 'parked' limit $2))
	  and state = 'parked' order by event for update skip locked
), lanes as materialized (
	select p.event, p.lane from idem_payloads p join chosen using (event) where p.lane is not null
), passed as (
	update idem_payloads p set lane = null from lanes where p.event = lanes.event and not p.held
	returning p.event
)
select lane from lanes join passed using (event)`
	rows, _ := tx.Query(ctx, pass, source, n)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
