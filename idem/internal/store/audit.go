package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Action is a row of idem_audit.
type Action struct {
	ID      int64
	At      time.Time
	Actor   string
	Action  string
	Source  string
	Filter  string
	Reason  string
	Events  int64     // how many are recorded
	Result  string    // its progress until it has ended
	EndedAt time.Time // zero while it is running

	Alive     bool   // it has not ended, and its process has given a sign of life
	StoppedBy string // the person that asked it to end; "" for none
}

// aliveSQL is [Alive] in SQL.
const aliveSQL = `interval '12 seconds'`

// BeginAction records an action on events, by their row keys, in a transaction at read committed. Its number
// follows the largest in the table, so that it is right in a restored or replicated table, too.
func BeginAction(ctx context.Context, tx DB, a Action, keys []string) (id int64, err error) {
	const begin = `
insert into idem_audit (id, actor, action, source, filter, reason, events)
select coalesce(max(id), 0) + 1, $1, $2, $3, $4, $5, $6 from idem_audit
on conflict (id) do nothing
returning id, ` + onDisk
	if keys == nil {
		keys = []string{}
	}
	for { // until no other action begins with the same number
		err = tx.QueryRow(ctx, begin, a.Actor, a.Action, a.Source, a.Filter, a.Reason, keys).Scan(&id, nil)
		if !errors.Is(err, pgx.ErrNoRows) {
			return id, err
		}
	}
}

// ActedWithin reports whether the same action on the same filter has begun within d, by anybody. Whoever asks next
// waits until tx has ended.
func ActedWithin(ctx context.Context, tx DB, a Action, d time.Duration) (acted bool, err error) {
	const same = `select pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'idem_audit', $1::text, $2::text, $3::text), 0))`
	if _, err := tx.Exec(ctx, same, a.Source, a.Action, a.Filter); err != nil {
		return false, err
	}
	const find = `select exists (select from idem_audit where source = $1 and action = $2 and filter = $3 and at > clock_timestamp() - $4::interval)`
	err = tx.QueryRow(ctx, find, a.Source, a.Action, a.Filter, d).Scan(&acted)
	return acted, err
}

// LastAction reads the latest of an action on a filter. The error is pgx.ErrNoRows if there is none.
func LastAction(ctx context.Context, db DB, a Action) (Action, error) {
	rows, _ := db.Query(ctx, actionColumns+` from idem_audit a where a.source = $1 and a.action = $2 and a.filter = $3 order by a.id desc limit 1`, a.Source, a.Action, a.Filter)
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Action, error) { return scanAction(row) })
}

// ChangedBy records the events that an action changed, and the result, in the transaction that changes them.
// each is the result for each event. If a person has asked the action to end, ChangedBy records nothing and
// returns that person: the caller rolls the transaction back. After ChangedBy it is too late to ask.
func ChangedBy(ctx context.Context, tx DB, id int64, keys []string, result, each string) (stoppedBy string, err error) {
	const changed = `
with ended as (
	update idem_audit set events = $2, result = $3, ended_at = clock_timestamp()
	where id = $1 and ended_at is null and stopped_by is null returning id
), changed as (
	insert into idem_audit_events (action, event, result) select ended.id, e.event, $4 from ended, unnest($2::text[]) as e (event)
	on conflict (event, action) do update set result = excluded.result, at = excluded.at
)
select count(*) from ended`
	n := 0
	if err = tx.QueryRow(ctx, changed, id, append([]string{}, keys...), result, each).Scan(&n); err != nil || n > 0 {
		return "", err
	}
	err = tx.QueryRow(ctx, `select stopped_by from idem_audit where id = $1 and stopped_by is not null`, id).Scan(&stoppedBy)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errors.New("the action is not in the audit trail any more")
	}
	return stoppedBy, err
}

// EndAction records the result of an action, unless the action's transaction has recorded it.
func EndAction(ctx context.Context, db DB, id int64, result string) error {
	_, err := db.Exec(ctx, `update idem_audit set result = $2, ended_at = now() where id = $1 and ended_at is null`, id, result)
	return err
}

// actionColumns are the columns that scanAction reads of an action a. The result of a replay that has not ended
// is how far it has come.
const actionColumns = `
select a.id, a.at, a.actor, a.action, a.source, a.filter, a.reason, cardinality(a.events),
	coalesce(a.result, case when a.action like '%replay' then (
		select format('%s of %s: %s done, %s failed, %s without a handler', count(*), cardinality(a.events), count(*) filter (where result = 'done'),
			count(*) filter (where result = 'failed'), count(*) filter (where result = 'unhandled'))
		from idem_audit_events where action = a.id and result <> 'left' having count(*) > 0) end, ''), a.ended_at,
	a.ended_at is null and a.seen_at > now() - ` + aliveSQL + `, coalesce(a.stopped_by, '')`

func scanAction(row pgx.CollectableRow, more ...any) (a Action, err error) {
	err = row.Scan(append([]any{
		&a.ID, &a.At, &a.Actor, &a.Action, &a.Source, &a.Filter, &a.Reason, &a.Events, &a.Result, orZero(&a.EndedAt),
		&a.Alive, &a.StoppedBy,
	}, more...)...)
	return a, err
}

// ListActions lists n actions on events of a source, the newest first; if before is not 0, only actions with
// a smaller id.
func ListActions(ctx context.Context, db DB, source string, before int64, n int) ([]Action, error) {
	const list = actionColumns + ` from idem_audit a where a.source = $1 and ($2 = 0 or a.id < $2) order by a.id desc limit $3`
	rows, _ := db.Query(ctx, list, source, before, n)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Action, error) { return scanAction(row) })
}

// GetAction reads an action on events of a source. The error is pgx.ErrNoRows if there is none.
func GetAction(ctx context.Context, db DB, source string, id int64) (Action, error) {
	rows, _ := db.Query(ctx, actionColumns+` from idem_audit a where a.source = $1 and a.id = $2`, source, id)
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Action, error) { return scanAction(row) })
}

// ActionEvents lists the row keys of the events that an action chose or, once it has ended, changed.
func ActionEvents(ctx context.Context, db DB, id int64) (keys []string, err error) {
	err = db.QueryRow(ctx, `select events from idem_audit where id = $1`, id).Scan(&keys)
	return keys, err
}

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
	return GetAction(ctx, tx, source, id) // as committed when the lock was granted
}

// AskToStop records the person that asks an action to end.
func AskToStop(ctx context.Context, tx DB, id int64, by string) error {
	_, err := tx.Exec(ctx, `update idem_audit set stopped_by = $2 where id = $1`, id, by)
	return err
}

// Outcome is the result of an action on an event.
type Outcome struct {
	Event  string // its row key
	Result string // "" until the action has processed the event
	At     time.Time
}

// ListOutcomes lists n of the events that an action chose, and of the events that followed them: first the
// failed ones, then the ones that the action has not reached, then the others in the order in which they were
// chosen.
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
		err = row.Scan(&o.Event, &o.Result, orZero(&o.At))
		return o, err
	})
}

// acknowledging reads the last action that acknowledged an event; zero if there is none.
func acknowledging(ctx context.Context, db DB, event string) (a Action, err error) {
	const find = actionColumns + `
from idem_audit_events o join idem_audit a on a.id = o.action where o.event = $1 and o.result = 'acknowledged' order by a.id desc limit 1`
	rows, _ := db.Query(ctx, find, event)
	a, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Action, error) { return scanAction(row) })
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return a, err
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
