package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Erased counts the results of events that were to be erased.
type Erased struct {
	Events []string // row keys of those that are
	Open   int64    // left, and not done or discarded
	Busy   int64    // left, although they are: another transaction holds them
}

// Erase deletes the stored data of done and discarded events beside their rows, by their row
// keys: bodies, archived bodies, errors and traces. Of those that are not done and have no body
// any more, it makes discarded ones if open is set. The rows stay, as the duplicate check.
//
// Those that another transaction holds are left. They are locked before anything is read of
// them, by a statement of its own: at read committed the next one sees rows that were committed
// until then, a body that was archived just now.
func Erase(ctx context.Context, tx pgx.Tx, keys []string, open bool) (e Erased, err error) {
	const lock = `
select event from idem_events
where event = any ($1) and (state in ('done', 'discarded') or $2 and not exists (select from idem_payloads p where p.event = idem_events.event))
order by event for update skip locked`
	const erase = `
with gone as (
	update idem_events e set state = case state when 'done' then 'done' else 'discarded' end,
		last_error = case state when 'done' then null else 'discarded: erased' end, claimed_at = null, claimed_by = null
	where event = any ($1)
	returning event, ` + onDisk + `
), bodies as (
	delete from idem_payloads where event = any ($1)
), archived as (
	delete from idem_archive where event = any ($1)
)
select event from gone order by event`
	const left = `
select count(*) filter (where state not in ('done', 'discarded')), count(*) filter (where state in ('done', 'discarded'))
from idem_events where event = any ($1) and event <> all ($2)`
	rows, _ := tx.Query(ctx, lock, keys, open)
	locked, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return e, err
	}
	rows, _ = tx.Query(ctx, erase, locked)
	if e.Events, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return e, err
	}
	err = tx.QueryRow(ctx, left, keys, e.Events).Scan(&e.Open, &e.Busy)
	return e, err
}
