package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Account is the source and scope that events are stored under.
type Account struct{ Source, Scope string }

// keys returns the first row key that an account's event may have, and the first one
// after all of them: '0' follows '/'.
func (a Account) keys() (first, after string) {
	first = Event{Source: a.Source, Scope: a.Scope}.RowKey()
	return first, strings.TrimSuffix(first, "/") + "0"
}

// CountAccount counts the events of an account, in any state.
func CountAccount(ctx context.Context, db DB, a Account) (n int64, err error) {
	first, after := a.keys()
	err = db.QueryRow(ctx, `select count(*) from idem_events where event >= $1 and event < $2`, first, after).Scan(&n)
	return n, err
}

// LockTables has all others that store or process events wait, from now to the end of
// the transaction. It waits for those that do it now, for 10 seconds at most.
func LockTables(ctx context.Context, tx DB) error {
	b := &pgx.Batch{}
	b.Queue(`set local lock_timeout = '10s'`)
	b.Queue(`lock table idem_events, idem_payloads, idem_archive in exclusive mode`)
	return tx.SendBatch(ctx, b).Close()
}

// FindBoth returns the row keys of the events of one account that another one also
// has, by their ids: of their rows, their bodies or their archived bodies. They are
// sorted, and there are most at most; n is the number of all.
func FindBoth(ctx context.Context, db DB, from, to Account, most int) (keys []string, n int64, err error) {
	both := func(table string) string {
		return `select f.event from ` + table + ` f join ` + table + ` t on t.event = $3 || substr(f.event, length($1) + 1)
where f.event >= $1 and f.event < $2`
	}
	find := `
with found as (` + both("idem_events") + ` union ` + both("idem_payloads") + ` union ` + both("idem_archive") + `)
select coalesce((select array_agg(event order by event) from (select event from found order by event limit $4) few), '{}'), count(*) from found`
	first, after := from.keys()
	target, _ := to.keys()
	err = db.QueryRow(ctx, find, first, after, target, most).Scan(&keys, &n)
	return keys, n, err
}

// Rescope gives all rows of an account the names of another one, and returns how many
// events that were. The entries of the audit trail about these events are renamed with them;
// the trail of a source goes with the last of its events.
func Rescope(ctx context.Context, tx DB, from, to Account) (n int64, err error) {
	const renamed = `$3 || substr(event, length($1) + 1)`
	const chosen = ` where event >= $1 and event < $2`
	const events = `update idem_events set event = ` + renamed + chosen
	const bodies = `
update idem_payloads set event = ` + renamed + `, source = $4,
	lane = left($3, -1) || substr(lane, length($1))` + chosen // the account without its slash: "%/" follows where an event has no entity
	const archive = `update idem_archive set event = ` + renamed + chosen
	const trail = `
update idem_audit set events = array(
	select case when starts_with(event, $1) then $2 || substr(event, length($1) + 1) else event end
	from unnest(events) with ordinality as u (event, place) order by place)
where source = $3 and exists (select from unnest(events) as u (event) where starts_with(event, $1))`
	const outcomes = `update idem_audit_events set event = ` + renamed + chosen
	const trailOf = `
update idem_audit set source = $2
where source = $1 and not exists (select from idem_events where event >= $1 || '/' and event < $1 || '0')`
	first, after := from.keys()
	target, _ := to.keys()
	tag, err := tx.Exec(ctx, events, first, after, target)
	if err != nil {
		return 0, err
	}
	b := &pgx.Batch{}
	b.Queue(bodies, first, after, target, to.Source)
	b.Queue(archive, first, after, target)
	b.Queue(trail, first, target, from.Source)
	b.Queue(outcomes, first, after, target)
	if from.Source != to.Source {
		b.Queue(trailOf, from.Source, to.Source)
	}
	b.Queue(`select ` + onDisk).QueryRow(func(row pgx.Row) error { return row.Scan(nil) })
	return tag.RowsAffected(), tx.SendBatch(ctx, b).Close()
}

// SetAsideType is the type of bodies that no account has sent, as far as is known.
const SetAsideType = "paghooks.set_aside"

const (
	unscoped = `select from idem_events where event >= $2 and event < $3 and event <> $4 and type <> '` + SetAsideType + `'`
	scoped   = `(exists (select from idem_events where event >= $1 || '/' and event < $2) or
	exists (select from idem_events where event >= $3 and event < $1 || '0'))`
)

// HasUnscoped reports whether a source has events of an account without a scope.
func HasUnscoped(ctx context.Context, db DB, source string) (bool, error) {
	return askScopes(ctx, db, source, `select $1 <> '' and exists (`+unscoped+`)`)
}

// HasMixedScopes reports whether a source has events with a scope and events
// without one. It looks into the primary key three times, however many there are.
func HasMixedScopes(ctx context.Context, db DB, source string) (bool, error) {
	return askScopes(ctx, db, source, `select exists (`+unscoped+`) and `+scoped)
}

// IsUnscoped reports whether a source has events of an account without a scope, and none of an
// account with one, and whether nobody makes either any more: no worker is alive, and none
// came for a day.
func IsUnscoped(ctx context.Context, db DB, source string) (bool, error) {
	return askScopes(ctx, db, source, `
select exists (`+unscoped+`) and not `+scoped+`
	and not exists (select from idem_workers where source = $1 and seen_at > now() - $5::interval)
	and not exists (`+unscoped+` and received_at > now() - interval '1 day')`, Alive)
}

func askScopes(ctx context.Context, db DB, source, question string, args ...any) (yes bool, err error) {
	first, after := Account{Source: source}.keys()
	err = db.QueryRow(ctx, question, append([]any{source, first, after, canaryKey(source)}, args...)...).Scan(&yes)
	return yes, err
}
