package store

import (
	"context"
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
	Result  string    // how far it has come, as long as it has not ended
	EndedAt time.Time // zero while it is running
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

// ChangedBy records which events an action changed, and with what result, in the transaction
// that changes them.
func ChangedBy(ctx context.Context, tx DB, id int64, keys []string, result string) error {
	const changed = `update idem_audit set events = $2, result = $3, ended_at = clock_timestamp() where id = $1`
	_, err := tx.Exec(ctx, changed, id, append([]string{}, keys...), result)
	return err
}

// EndAction records how an action ended, unless its transaction has recorded that.
func EndAction(ctx context.Context, db DB, id int64, result string) error {
	_, err := db.Exec(ctx, `update idem_audit set result = $2, ended_at = now() where id = $1 and ended_at is null`, id, result)
	return err
}

// ListActions lists n actions on events of a source, the newest first, those with
// an id below before unless that is 0.
func ListActions(ctx context.Context, db DB, source string, before int64, n int) ([]Action, error) {
	const list = `
select id, at, actor, action, source, filter, reason, cardinality(events), coalesce(result, ''), ended_at
from idem_audit where source = $1 and ($2 = 0 or id < $2) order by id desc limit $3`
	rows, _ := db.Query(ctx, list, source, before, n)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Action, err error) {
		var ended *time.Time
		err = row.Scan(&a.ID, &a.At, &a.Actor, &a.Action, &a.Source, &a.Filter, &a.Reason, &a.Events, &a.Result, &ended)
		a.EndedAt = timeOrZero(ended)
		return a, err
	})
}

// ActionEvents lists the row keys of the events that an action chose or, once it has ended, changed.
func ActionEvents(ctx context.Context, db DB, id int64) (keys []string, err error) {
	err = db.QueryRow(ctx, `select events from idem_audit where id = $1`, id).Scan(&keys)
	return keys, err
}
