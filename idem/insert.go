package idem

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// insertPending stores new events and returns them. Sorted, so that two
// statements with the same events cannot block each other; those that arrived
// first get the earlier time.
const insertPending = `
with input as (
	select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bytea[])
		with ordinality as i (event, type, key, queue, occurred_at, body, place)
), new as (
	insert into idem_events (event, type, key, state, received_at)
	select event, type, key, 'pending', now() + place * interval '1 microsecond' from input
	where (select set_config('lock_timeout', '100ms', true)) is not null order by event
	on conflict do nothing
	returning event, received_at
), bodies as (
	insert into idem_payloads (event, done, queue, occurred_at, received_at, body)
	select event, false, queue, occurred_at, new.received_at, body from new join input using (event)
)
select event from new`

// reviveKept makes a stored event pending that is neither done nor pending: an
// application that worked inline has left it, or somebody sends it again. It
// leaves one alone that is in work there.
const reviveKept = `
with kept as (
	select event from idem_events where event = $1 and state in ('retrying', 'unhandled', 'parked') for update skip locked
)
update idem_events e set state = 'pending', attempts = 0, crashes = null, due_at = null from kept where e.event = kept.event`

// insert stores a batch of arrivals and tells each what became of it.
func (i *Inbox) insert(ctx context.Context, batch []*arrival) error {
	var events, types, keys, queues []string
	var occurred []*time.Time
	var bodies [][]byte
	first := make(map[string]*arrival, len(batch))
	for _, a := range batch {
		e := &a.event
		event := rowKey(*e)
		if first[event] != nil {
			continue
		}
		first[event] = a
		events, types, keys, queues = append(events, event), append(types, e.Type), append(keys, e.Key), append(queues, queueOf(*e))
		occurred, bodies = append(occurred, nullTime(e.OccurredAt)), append(bodies, e.Payload)
	}
	rows, err := i.pool.Query(ctx, insertPending, events, types, keys, queues, occurred, bodies)
	if err != nil {
		return err
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, event := range stored {
		first[event].outcome = Pending
	}
	if err := i.lookUp(ctx, first); err != nil {
		return err
	}
	for _, a := range first {
		if a.outcome == "" { // it was there, and is gone: pruned in between
			a.outcome, a.err = Retrying, errors.New("the event was being forgotten when it came again")
		}
	}
	for _, a := range batch {
		if twin := first[rowKey(a.event)]; twin != a {
			a.outcome, a.err = twin.outcome, twin.err
			if a.outcome == Pending {
				a.outcome = Duplicate
			}
		}
	}
	if len(stored) > 0 {
		i.tellWorkers()
	}
	return nil
}

// lookUp finds out about the arrivals that were stored before.
func (i *Inbox) lookUp(ctx context.Context, first map[string]*arrival) error {
	var old []string
	for event, a := range first {
		if a.outcome == "" {
			old = append(old, event)
		}
	}
	if len(old) == 0 {
		return nil
	}
	rows, err := i.pool.Query(ctx, `select event, state from idem_events where event = any ($1)`, old)
	if err != nil {
		return err
	}
	var event string
	var state State
	var kept []string
	_, err = pgx.ForEachRow(rows, []any{&event, &state}, func() error {
		switch state {
		case StateDone, StatePending, StateDiscarded:
			first[event].outcome = Duplicate
		default:
			kept = append(kept, event)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, event := range kept {
		a := first[event]
		a.outcome, a.err = i.revive(ctx, event, a.event)
	}
	return nil
}

// revive makes an event pending that is kept for another reason.
func (i *Inbox) revive(ctx context.Context, event string, e Event) (Outcome, error) {
	revived := false
	err := keeping(ctx, i.pool, e, func(b *pgx.Batch) {
		b.Queue(reviveKept, event).Exec(func(tag pgconn.CommandTag) error {
			revived = tag.RowsAffected() == 1
			return nil
		})
	})
	switch {
	case err != nil:
		return Retrying, err
	case !revived:
		return Retrying, errors.New("a delivery of the same event is being worked on in another process")
	}
	i.tellWorkers()
	return Pending, nil
}
