package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// SignAction writes the sign of life of an action's process. It returns the person that asked the action to
// end, "" for none.
func SignAction(ctx context.Context, db DB, id int64) (stoppedBy string, err error) {
	const sign = `update idem_audit set seen_at = now() where id = $1 and ended_at is null returning coalesce(stopped_by, '')`
	return stopped(db.QueryRow(ctx, sign, id))
}

// NoteOutcome records the outcome of an action on an event, and returns the results of [SignAction].
// Its commit does not wait for the disk.
func NoteOutcome(ctx context.Context, db DB, id int64, event, result string) (stoppedBy string, err error) {
	const note = `
with noted as (
	insert into idem_audit_events (action, event, result) values ($1, $2, $3)
	on conflict (event, action) do update set result = excluded.result, at = excluded.at
), soon as (
	select set_config('synchronous_commit', 'off', true) as off
)
select coalesce(stopped_by, '') from idem_audit, soon where id = $1 and ended_at is null and off is not null`
	return stopped(db.QueryRow(ctx, note, id, event, result))
}

func stopped(row pgx.Row) (by string, err error) {
	if err = row.Scan(&by); errors.Is(err, pgx.ErrNoRows) { // it has ended
		err = nil
	}
	return by, err
}

// LockAction reads an action on events of a source, for a change in the same
// transaction. The error is pgx.ErrNoRows if there is none.
func LockAction(ctx context.Context, tx DB, source string, id int64) (Action, error) {
	if _, err := tx.Exec(ctx, `select from idem_audit where source = $1 and id = $2 for update`, source, id); err != nil {
		return Action{}, err
	}
	return GetAction(ctx, tx, source, id) // as it was committed when the lock was there
}

// AskToStop records the person that asks an action to end.
func AskToStop(ctx context.Context, tx DB, id int64, by string) error {
	_, err := tx.Exec(ctx, `update idem_audit set stopped_by = $2 where id = $1`, id, by)
	return err
}

// Outcome is the result of an action on an event.
type Outcome struct {
	Event  string // its row key
	Result string // "" while it has done nothing to it
	At     time.Time
}

// ListOutcomes lists n of the events that an action chose, and those that followed them: first those
// that failed, then those that it has not reached, then others in the order in which they were chosen.
func ListOutcomes(ctx context.Context, db DB, id int64, n int) ([]Outcome, error) {
	const list = `
select coalesce(c.event, o.event), coalesce(o.result, ''), o.at
from (select u.event, u.place from idem_audit a, unnest(a.events) with ordinality as u (event, place) where a.id = $1) c
full join (select event, result, at from idem_audit_events where action = $1) o on o.event = c.event
order by case o.result when 'failed' then 0 when 'unhandled' then 1 when 'left' then 2 else case when o.result is null then 3 else 4 end end,
	c.place nulls last, o.at, 1
limit $2`
	rows, _ := db.Query(ctx, list, id, n)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Outcome, err error) {
		var at *time.Time
		err = row.Scan(&o.Event, &o.Result, &at)
		o.At = timeOrZero(at)
		return o, err
	})
}

// Touched is an action with its outcome for one event.
type Touched struct {
	Action  Action
	Outcome Outcome
}

// ListTouched lists the last n actions that have done something to an event, the newest first.
func ListTouched(ctx context.Context, db DB, event string, n int) ([]Touched, error) {
	const list = actionColumns + `, o.event, o.result, o.at
from idem_audit_events o join idem_audit a on a.id = o.action where o.event = $1 order by a.id desc limit $2`
	rows, _ := db.Query(ctx, list, event, n)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Touched, err error) {
		t.Action, err = scanAction(row, &t.Outcome.Event, &t.Outcome.Result, &t.Outcome.At)
		return t, err
	})
}
