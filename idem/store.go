package idem

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// State is what the database knows of an event.
type State string

const (
	StateDone      State = "done"      // its work is committed
	StateRetrying  State = "retrying"  // its work failed; the provider is to deliver it again
	StateUnhandled State = "unhandled" // acknowledged without a handler
	StateParked    State = "parked"    // acknowledged although its work failed
	StatePending   State = "pending"   // acknowledged; an inbox's workers are to do its work
	StateDiscarded State = "discarded" // failed or unhandled, and given up by hand
)

// markNew is the duplicate check and the record in one: it inserts and returns
// a row if the event is new, and neither otherwise. While another transaction
// is inserting the same event it waits, for a moment: lock_timeout is set before
// the insert and set back after it, because two more statements for that would
// cost as much as the insert.
const markNew = `
insert into idem_events (event, type, key, state)
select $1::text, $2::text, $3::text, 'done' where set_config('lock_timeout', '100ms', true) is not null
on conflict do nothing
returning set_config('lock_timeout', null, true)`

// markKept is markNew for an event that is stored and not done; one that is
// pending is done now instead of by a worker.
const markKept = `
update idem_events set state = 'done', last_error = null, due_at = null
where event = $1 and state in ('retrying', 'unhandled', 'parked', 'pending') and set_config('lock_timeout', '100ms', true) is not null
returning set_config('lock_timeout', null, true)`

// insertPayload stores the payload of an event that is done.
const insertPayload = `
insert into idem_payloads (event, done, occurred_at, received_at, body) values ($1, true, $2, now(), $3) on conflict do nothing`

// payloadOf is where the payload of an event e is: one that waits for its work is
// found by its queue, any other by its event.
const payloadOf = `(
	select ctid from idem_payloads where event = e.event and queue is null
	union all select ctid from idem_payloads where event = e.event and queue = ` + queueOfRow + `)`

// queueOfRow is queueOf in SQL, for the row e of an event.
const queueOfRow = `case e.key when '' then e.event else substring(e.event from '^[^/]*/[^/]*/') || e.key end`

const (
	settlePayload = `
update idem_payloads b set done = true, queue = null from idem_events e cross join lateral ` + payloadOf + ` p
where e.event = $1 and b.ctid = p.ctid`
	deletePayload = `
delete from idem_payloads b using idem_events e cross join lateral ` + payloadOf + ` p where e.event = $1 and b.ctid = p.ctid`
)

// keepPayload brings the payload of an event to where its state, which is not
// done, wants it: in its queue, if it is pending. It stores the payload if that
// is not stored.
const keepPayload = `
with kept as (
	select event, key, state from idem_events where event = $1 and state in ('retrying', 'unhandled', 'parked', 'pending')
), queued as (
	update idem_payloads b set queue = ` + queueOfRow + `, received_at = now() from kept e
	where e.state = 'pending' and b.event = e.event and b.queue is null
)
insert into idem_payloads (event, done, queue, occurred_at, received_at, body)
select event, false, case state when 'pending' then ` + queueOfRow + ` end, $2, now(), $3 from kept e
where not exists ` + payloadOf

// keeping executes a statement that changes the state of an event, and keeps its
// payload accordingly, both or neither. The payload comes behind it: another
// process may have stored it while the statement waited.
func keeping(ctx context.Context, pool *pgxpool.Pool, e Event, change func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	change(b)
	b.Queue(keepPayload, rowKey(e), nullTime(e.OccurredAt), e.Payload)
	return pool.SendBatch(ctx, b).Close()
}

// storeKept stores an event as unhandled or failed, with its payload. stored is
// false if it was stored before.
func storeKept(ctx context.Context, pool *pgxpool.Pool, e Event, state State, cause error) (stored bool, err error) {
	const keep = `
with kept as (
	insert into idem_events as e (event, type, key, state, last_error) values ($1, $2, $3, $4, $5)
	on conflict (event) do update set state = excluded.state, last_error = excluded.last_error
	where e.state = 'retrying'
	returning event
), body as (
	insert into idem_payloads (event, done, occurred_at, received_at, body)
	select event, false, $6, now(), $7 from kept on conflict do nothing
)
select count(*) = 1 from kept`
	err = pool.QueryRow(ctx, keep, rowKey(e), e.Type, e.Key, string(state), errorText(cause),
		nullTime(e.OccurredAt), e.Payload).Scan(&stored)
	return stored, err
}

// storeFailure counts a failed delivery, and keeps the payload in case that the
// provider gives up. After parkAfter of them the event gets the state park. It
// returns StateRetrying while the event is to come again, StateDone if it is
// done by now, and else the state that it has got.
func storeFailure(ctx context.Context, pool *pgxpool.Pool, e Event, cause error, parkAfter int, park State) (State, error) {
	const count = `
insert into idem_events as e (event, type, key, attempts, last_error, state)
values ($1, $2, $3, 1, $4, case when $5 <= 1 then $6 else 'retrying' end)
on conflict (event) do update set
	attempts = e.attempts + 1,
	last_error = excluded.last_error,
	state = case when e.state = 'pending' or e.state = 'retrying' and e.attempts + 1 < $5 then e.state else $6 end
where e.state in ('retrying', 'unhandled', 'parked', 'pending')
returning state`
	state := StateDone
	err := keeping(ctx, pool, e, func(b *pgx.Batch) {
		b.Queue(count, rowKey(e), e.Type, e.Key, errorText(cause), parkAfter, string(park)).QueryRow(func(row pgx.Row) error {
			if err := row.Scan(&state); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		})
	})
	return state, err
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// errorText is what of an error is worth a place in the table.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	text := storable(err.Error())
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "")
	}
	return &text
}

const maxErrorText = 1000

// storable replaces what a text column of Postgres cannot hold.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
