package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Keep stores an event that no handler can process now, with its body, as
// unhandled or parked. stored is false if it was stored before, unless a
// provider was to deliver it again. A parked one holds its lane unless pass is set.
func Keep(ctx context.Context, db DB, e Event, state string, lastError *string, pass bool) (stored bool, err error) {
	const keep = `
with kept as (
	insert into idem_events as e (event, type, key, state, last_error, body_hash) values ($1, $2, $3, $4, $5, $6)
	on conflict (event) do update set state = excluded.state, last_error = excluded.last_error
	where e.state = 'retrying'
	returning event, key, state, ` + onDisk + `
), body as (
	insert into idem_payloads (event, source, lane, occurred_at, received_at, body)
	select event, $7, case when state = 'parked' and not $10 then ` + rowLane + ` end, $8, now(), $9 from kept e
	on conflict (event) do update set lane = excluded.lane where excluded.lane is not null
)
select count(*) = 1 from kept`
	err = db.QueryRow(ctx, keep, e.RowKey(), e.Type, e.Key, state, lastError, hash(e.Payload),
		e.Source, nullTime(e.OccurredAt), e.Payload, pass).Scan(&stored)
	return stored, err
}

// CountFailure counts a failed delivery, with the body in case that the provider
// does not deliver the event again. The event becomes retrying or, at the
// failure of number limit, atLimit: parked or pending. One that was
// unhandled or parked becomes that at once; one that is pending stays so. A parked
// one holds its lane unless pass is set: then what it has held goes on. It
// returns the state that the event has got, and Done if it is done or discarded.
func CountFailure(ctx context.Context, db DB, e Event, lastError *string, limit int, atLimit string, pass bool) (state string, err error) {
	const count = `
with counted as (
	insert into idem_events as e (event, type, key, attempts, last_error, body_hash, state)
	values ($1, $2, $3, 1, $4, $5, case when $6 <= 1 then $7 else 'retrying' end)
	on conflict (event) do update set
		attempts = e.attempts + 1,
		last_error = excluded.last_error,
		state = case when e.state = 'pending' or e.state = 'retrying' and e.attempts + 1 < $6 then e.state else $7 end
	where e.state in ('pending', 'retrying', 'unhandled', 'parked')
	returning event, key, state, ` + onDisk + `
), body as (
	insert into idem_payloads as p (event, source, lane, due_at, occurred_at, received_at, body)
	select event, $8, case when state = 'pending' or state = 'parked' and not $11 then ` + rowLane + ` end,
		case state when 'pending' then now() end, $9, now(), $10 from counted e
	on conflict (event) do update set lane = excluded.lane, due_at = excluded.due_at, held = false
	where p.held or excluded.due_at is not null and p.due_at is null or excluded.due_at is null and p.lane is distinct from excluded.lane
)
select state from counted`
	state = Done
	b := &pgx.Batch{}
	b.Queue(count, e.RowKey(), e.Type, e.Key, lastError, hash(e.Payload), limit, atLimit,
		e.Source, nullTime(e.OccurredAt), e.Payload, pass).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&state); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	if pass {
		b.Queue(promoteHeld, e.Lane())
	}
	err = db.SendBatch(ctx, b).Close()
	return state, err
}
