package idem

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// State is what the database knows of an event.
type State string

const (
	StateDone      State = "done"      // its work is committed
	StateRetrying  State = "retrying"  // its work failed; the provider delivers it again
	StateUnhandled State = "unhandled" // acknowledged without a handler; its payload is kept
	StateFailed    State = "failed"    // acknowledged although its work failed; its payload is kept
)

// markDone is the duplicate check and the record in one: it returns a row if
// the event is this transaction's to work on. "seen" tells a row that was
// there before from a new one.
const markDone = `
insert into idem_events as e (source, scope, id, type, key, occurred_at, state)
values ($1, $2, $3, $4, $5, $6, 'done')
on conflict (source, scope, id) do update set state = 'done', last_error = null
where e.state in ('retrying', 'unhandled', 'failed')
returning xmax <> 0 as seen`

const keepPayload = `insert into idem_payloads (source, scope, id, body) values ($1, $2, $3, $4) on conflict do nothing`

const dropPayload = `delete from idem_payloads where source = $1 and scope = $2 and id = $3`

// storeKept stores an event as unhandled or failed, with its payload. stored is
// false if it was stored before.
func storeKept(ctx context.Context, db querier, e Event, state State, cause error) (stored bool, err error) {
	const keep = `
with kept as (
	insert into idem_events as e (source, scope, id, type, key, occurred_at, state, last_error)
	values ($1, $2, $3, $4, $5, $6, $7, $8)
	on conflict (source, scope, id) do update set state = excluded.state, last_error = excluded.last_error
	where e.state = 'retrying'
	returning id
), body as (
	insert into idem_payloads (source, scope, id, body) select $1, $2, id, $9 from kept on conflict do nothing
)
select count(*) = 1 from kept`
	err = db.QueryRow(ctx, keep, e.Source, e.Scope, e.ID, e.Type, e.Key, nullTime(e.OccurredAt),
		string(state), errorText(cause), e.Payload).Scan(&stored)
	return stored, err
}

// storeFailure counts a failed delivery. It returns StateRetrying while the
// provider is to deliver the event again, StateFailed once it is kept with its
// payload, and StateDone if another process has done it meanwhile.
func storeFailure(ctx context.Context, db querier, e Event, cause error, parkAfter int) (State, error) {
	const count = `
with counted as (
	insert into idem_events as e (source, scope, id, type, key, occurred_at, attempts, last_error, state)
	values ($1, $2, $3, $4, $5, $6, 1, $7, case when $8 <= 1 then 'failed' else 'retrying' end)
	on conflict (source, scope, id) do update set
		attempts = e.attempts + 1,
		last_error = excluded.last_error,
		state = case when e.state = 'retrying' and e.attempts + 1 < $8 then 'retrying' else 'failed' end
	where e.state <> 'done'
	returning id, state
), body as (
	insert into idem_payloads (source, scope, id, body)
	select $1, $2, id, $9 from counted where state = 'failed' on conflict do nothing
)
select state from counted`
	var state State
	err := db.QueryRow(ctx, count, e.Source, e.Scope, e.ID, e.Type, e.Key, nullTime(e.OccurredAt),
		errorText(cause), parkAfter, e.Payload).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return StateDone, nil
	}
	return state, err
}

// querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
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

// storable removes what a text column of Postgres cannot hold.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
