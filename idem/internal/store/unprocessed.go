package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

var storeUnprocessed = `
with kept as (
	insert into idem_events as e (event, type, key, state, last_error, body_hash, occurred_at) values ($1, $2, $3, $4, $5, $6, $8)
	on conflict (event) do update set state = excluded.state, last_error = excluded.last_error
	where e.state = 'retrying'
	returning event, key, state, ` + onDisk + `
), body as (
	insert into idem_payloads as p (event, source, lane, occurred_at, received_at, body, failures)
	select event, $7, case when state = 'parked' and not $10 then ` + rowLane + ` end, $8, now(), $9,
		case when $5::text is not null then ` + failure("$5") + ` end from kept e
	on conflict (event) do update set lane = excluded.lane, failures = ` + failuresAnd("$5") + `
	where excluded.lane is not null or excluded.failures is not null
)
select count(*) = 1 from kept`

// StoreUnprocessed stores an event that no handler can process now, with its body, as
// unhandled or parked. stored is false if it was stored before, unless a
// provider was to deliver it again. A parked one holds its lane unless pass is set.
func StoreUnprocessed(ctx context.Context, db DB, e Event, state string, lastError *string, pass bool) (stored bool, err error) {
	args := []any{e.RowKey(), e.Type, e.Key, state, lastError, hash(e.Payload), e.Source, nullTime(e.OccurredAt), e.Payload, pass}
	err = readCommitted(ctx, db, storeUnprocessed, args, func(rows pgx.Rows) (err error) {
		stored, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		return err
	})
	return stored, err
}

// moves reports whether a failure changes the place of a body p that is there.
const moves = `(p.held or excluded.due_at is not null and p.due_at is null or excluded.due_at is null and p.lane is distinct from excluded.lane)`

var countFailure = `
with counted as (
	insert into idem_events as e (event, type, key, attempts, last_error, body_hash, occurred_at, state)
	values ($1, $2, $3, 1, $4, $5, $8, case when $6 <= 1 then 'parked' else 'retrying' end)
	on conflict (event) do update set
		attempts = e.attempts + 1,
		last_error = excluded.last_error,
		state = case when e.state = 'pending' or e.state = 'retrying' and e.attempts + 1 < $6 then e.state else 'parked' end
	where e.state in ('pending', 'retrying', 'unhandled', 'parked')
	returning event, key, state, ` + onDisk + `
), body as (
	insert into idem_payloads as p (event, source, lane, due_at, occurred_at, received_at, body, failures)
	select event, $7, case when state = 'pending' or state = 'parked' and not $10 then ` + rowLane + ` end,
		case state when 'pending' then now() end, $8, now(), $9, ` + failure("$4") + ` from counted e
	on conflict (event) do update set
		lane = case when ` + moves + ` then excluded.lane else p.lane end,
		due_at = case when ` + moves + ` then excluded.due_at else p.due_at end,
		held = false, failures = ` + failuresAnd("$4") + `
)
select state from counted`

// CountFailure counts a failed delivery, with the body in case that the provider
// does not deliver the event again. The event becomes retrying or, at the failure of
// number limit, parked. An event that was unhandled or parked becomes parked at once; one that
// is pending stays so. A parked
// one holds its lane unless pass is set: then the events that it has held go on. It
// returns the state that the event has got, and Done if it is done or discarded.
func CountFailure(ctx context.Context, db DB, e Event, lastError *string, limit int, pass bool) (state string, err error) {
	state = Done
	b := &pgx.Batch{}
	b.Queue(countFailure, e.RowKey(), e.Type, e.Key, lastError, hash(e.Payload), limit,
		e.Source, nullTime(e.OccurredAt), e.Payload, pass).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&state); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	if pass {
		b.Queue(promoteHeld, e.Lane())
	}
	err = ReadCommitted(ctx, db, b)
	return state, err
}
