package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// aliveSQL is [Alive] in SQL.
const aliveSQL = `interval '12 seconds'`

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
	Result  string    // its progress, as long as it has not ended
	EndedAt time.Time // zero while it is running

	Alive     bool   // it has not ended, and its process has given a sign of life
	StoppedBy string // the person that asked it to end; "" for none
}

// BeginAction records an action on events, by their row keys.
func BeginAction(ctx context.Context, db DB, a Action, keys []string) (id int64, err error) {
	const begin = `
insert into idem_audit (actor, action, source, filter, reason, events) values ($1, $2, $3, $4, $5, $6)
returning id, ` + onDisk
	if keys == nil {
		keys = []string{}
	}
	err = db.QueryRow(ctx, begin, a.Actor, a.Action, a.Source, a.Filter, a.Reason, keys).Scan(&id, nil)
	return id, err
}

// NoteAction records how far an action has come that has not ended.
func NoteAction(ctx context.Context, db DB, id int64, progress string) error {
	_, err := db.Exec(ctx, `update idem_audit set result = $2 where id = $1 and ended_at is null`, id, progress)
	return err
}

// ChangedBy records the events that an action changed, and the result, in the transaction
// that changes them. each is the result of each of them. If somebody has asked the action to end, it
// records nothing and returns that person: the transaction is to be rolled back. Nobody can ask
// once it has returned.
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

// EndAction records how an action ended, unless its transaction has recorded that.
func EndAction(ctx context.Context, db DB, id int64, result string) error {
	_, err := db.Exec(ctx, `update idem_audit set result = $2, ended_at = now() where id = $1 and ended_at is null`, id, result)
	return err
}

// actionColumns are the columns that scanAction reads of an action a.
const actionColumns = `
select a.id, a.at, a.actor, a.action, a.source, a.filter, a.reason, cardinality(a.events), coalesce(a.result, ''), a.ended_at,
	a.ended_at is null and a.seen_at > now() - ` + aliveSQL + `, coalesce(a.stopped_by, '')`

func scanAction(row pgx.CollectableRow, more ...any) (a Action, err error) {
	var ended *time.Time
	err = row.Scan(append([]any{
		&a.ID, &a.At, &a.Actor, &a.Action, &a.Source, &a.Filter, &a.Reason, &a.Events, &a.Result, &ended,
		&a.Alive, &a.StoppedBy,
	}, more...)...)
	a.EndedAt = timeOrZero(ended)
	return a, err
}

// ListActions lists n actions on events of a source, the newest first, those with
// an id below before unless that is 0.
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
