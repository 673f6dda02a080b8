package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Discard gives up the events that are in one of states and not being processed. It returns their row keys,
// and the lane of each for [PromoteWaiting].
func Discard(ctx context.Context, tx pgx.Tx, keys, states []string, reason *string, archive bool) (discarded, lanes []string, err error) {
	const discard = `
with chosen as (
	select event from idem_events where event = any ($1) and state = any ($2) order by event for update skip locked
), gone as (
	update idem_events e set state = 'discarded', last_error = $3, claimed_at = null, claimed_by = null from chosen where e.event = chosen.event
	returning e.event
), bodies as (
	delete from idem_payloads p using gone where p.event = gone.event returning p.*
), kept as (
	insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from bodies where $4
	on conflict do nothing
)
select event, coalesce(lane, '') from bodies`
	rows, _ := tx.Query(ctx, discard, keys, states, reason, archive)
	var event, lane string
	_, err = pgx.ForEachRow(rows, []any{&event, &lane}, func() error {
		discarded, lanes = append(discarded, event), append(lanes, lane)
		return nil
	})
	return discarded, lanes, err
}

// Requeue makes the events pending and due that are in one of states and not being processed, each at its
// place in its lane. It returns their row keys.
func Requeue(ctx context.Context, db DB, keys, states []string) ([]string, error) {
	const requeue = `
with chosen as (
	select event from idem_events where event = any ($1) and state = any ($2) order by event for update skip locked
), again as (
	update idem_events e set state = 'pending', attempts = 0, crashes = 0, claimed_at = null, claimed_by = null from chosen
	where e.event = chosen.event
	returning e.event, e.key
), bodies as (
	update idem_payloads p set due_at = now(), acknowledged_at = null, lane = ` + rowLane + ` from again e where p.event = e.event
)
select event from again`
	rows, _ := db.Query(ctx, requeue, keys, states)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Erased counts the results of events that were to be erased.
type Erased struct {
	Events []string // row keys of the erased events
	Open   int64    // events that are left: not done or discarded
	Busy   int64    // events that are left: another transaction has locked them
}

// Erase deletes the stored data of done and discarded events beside their rows, by their row keys: bodies,
// archived bodies, errors and traces. If open is set, it also discards events that are not done and have no
// body any more. The rows stay, as the duplicate check.
//
// Events that another transaction has locked are left. A separate statement locks the events first: at read
// committed the next statement then sees everything that was committed before, such as a body that was
// archived just now.
func Erase(ctx context.Context, tx pgx.Tx, keys []string, open bool) (e Erased, err error) {
	const lock = `
select event from idem_events
where event = any ($1) and (state in ('done', 'discarded') or $2 and not exists (select from idem_payloads p where p.event = idem_events.event))
order by event for update skip locked`
	const erase = `
with gone as (
	update idem_events e set state = case state when 'done' then 'done' else 'discarded' end,
		last_error = case state when 'done' then null else 'discarded: erased' end, claimed_at = null, claimed_by = null
	where event = any ($1)
	returning event, ` + onDisk + `
), bodies as (
	delete from idem_payloads where event = any ($1)
), archived as (
	delete from idem_archive where event = any ($1)
)
select event from gone order by event`
	const left = `
select count(*) filter (where state not in ('done', 'discarded')), count(*) filter (where state in ('done', 'discarded'))
from idem_events where event = any ($1) and event <> all ($2)`
	rows, _ := tx.Query(ctx, lock, keys, open)
	locked, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return e, err
	}
	rows, _ = tx.Query(ctx, erase, locked)
	if e.Events, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return e, err
	}
	err = tx.QueryRow(ctx, left, keys, e.Events).Scan(&e.Open, &e.Busy)
	return e, err
}

// Import stores events as done, of which only the names and the times of arrival are known; a zero time is
// now. Events that are stored already are left. Import returns the number of new events.
func Import(ctx context.Context, db DB, events []Event, times []time.Time) (stored int64, err error) {
	const add = `
insert into idem_events (event, type, key, state, received_at)
select distinct on (event) event, type, key, 'done', least(coalesce(at, now()), now())
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as i (event, type, key, at)
where not exists (select from idem_events e where e.event = i.event) -- else it waits for the handler of one that is being processed
order by event, at desc nulls first -- in one order, so that two imports do not lock each other out
on conflict do nothing
returning ` + onDisk
	known := make([]*time.Time, len(times))
	keys, types, entities := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	for n, e := range events {
		keys[n], types[n], entities[n], known[n] = e.RowKey(), e.Type, e.Key, nullTime(times[n])
	}
	b := &pgx.Batch{}
	b.Queue(add, keys, types, entities, known).Exec(func(tag pgconn.CommandTag) error {
		stored = tag.RowsAffected()
		return nil
	})
	err = ReadCommitted(ctx, db, b)
	return stored, err
}

// Complete makes events done that another program has processed, if they are not done and not being processed
// here, and records that on an action. It returns their row keys, and their lanes for [PromoteWaiting].
func Complete(ctx context.Context, tx pgx.Tx, action int64, keys []string, archive bool) (completed, lanes []string, err error) {
	const complete = `
with chosen as (
	select event from idem_events e
	where event = any ($1) and state not in ('done', 'discarded') and not exists (select from idem_workers w where w.id = e.claimed_by)
	order by event for update skip locked
), completed as (
	update idem_events e set state = 'done', last_error = null, done_at = now(), claimed_at = null, claimed_by = null
	from chosen where e.event = chosen.event
	returning e.event, ` + onDisk + `
), bodies as (
	delete from idem_payloads p using completed c where p.event = c.event returning p.*
), kept as (
	insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from bodies where $2
	on conflict do nothing
), noted as (
	insert into idem_audit_events (action, event, result) select $3, event, 'imported' from completed
	on conflict (event, action) do update set result = excluded.result, at = excluded.at
)
select c.event, coalesce(b.lane, '') from completed c left join bodies b using (event)`
	rows, _ := tx.Query(ctx, complete, keys, archive, action)
	var event, lane string
	_, err = pgx.ForEachRow(rows, []any{&event, &lane}, func() error {
		completed, lanes = append(completed, event), append(lanes, lane)
		return nil
	})
	return completed, lanes, err
}

// CountLeft counts the events that are discarded, and those that are not done.
func CountLeft(ctx context.Context, db DB, keys []string) (discarded, open int64, err error) {
	const count = `
select count(*) filter (where state = 'discarded'), count(*) filter (where state not in ('done', 'discarded'))
from idem_events where event = any ($1)`
	err = db.QueryRow(ctx, count, keys).Scan(&discarded, &open)
	return discarded, open, err
}

// Account is the source and scope that events are stored under.
type Account struct{ Source, Scope string }

// keys returns the first possible row key of an account's events, and the first key after all of them: '0'
// follows '/'.
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

// LockTables has all other transactions that store or process events wait until this one ends. It waits for
// the running ones, for 10 seconds at most.
func LockTables(ctx context.Context, tx DB) error {
	b := &pgx.Batch{}
	b.Queue(`set local lock_timeout = '10s'`)
	b.Queue(`lock table idem_events, idem_payloads, idem_archive in exclusive mode`)
	return tx.SendBatch(ctx, b).Close()
}

// FindBoth returns the row keys of the events of one account whose ids another account has as well, in rows,
// bodies or archived bodies. The keys are sorted, and most at most; n is the number of all.
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

// Rescope moves all rows of an account to the names of another account, and returns the number of events. The
// entries of the audit trail about these events are renamed with them; the trail of a source is moved with
// the last of its events. Pauses of a source are those of the new one as well.
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
	const pauses = `
insert into idem_pauses (source, type, key, until, at, actor, reason, ended_at)
select $2, type, key, until, at, actor, reason, ended_at from idem_pauses where source = $1 on conflict do nothing`
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
		b.Queue(pauses, from.Source, to.Source)
	}
	b.Queue(`select ` + onDisk).QueryRow(func(row pgx.Row) error { return row.Scan(nil) })
	return tag.RowsAffected(), tx.SendBatch(ctx, b).Close()
}

// RescopeProvider moves the rows of the provider's own tables by the function SOURCE_rescope(was text, becomes text)
// along the search_path, if there is one. The function gets the scopes without escapes.
func RescopeProvider(ctx context.Context, tx DB, from, to Account) error {
	var function *string
	const find = `select to_regprocedure(quote_ident($1 || '_rescope') || '(text, text)')::regproc::text`
	if err := tx.QueryRow(ctx, find, from.Source).Scan(&function); err != nil || function == nil || from.Scope == to.Scope {
		return err
	}
	_, err := tx.Exec(ctx, `select `+*function+`($1, $2)`, from.Scope, to.Scope)
	return err
}

// SetAsideType is the type of bodies without a known account.
const SetAsideType = "paghooks.set_aside"

// UnreadableType is the type of bodies that came with the right token or signature and name no event.
const UnreadableType = "paghooks.unreadable"

const (
	unscoped = `select from idem_events where event >= $2 and event < $3 and event <> $4 and type <> '` + SetAsideType + `'`
	scoped   = `(exists (select from idem_events where event >= $1 || '/' and event < $2) or
	exists (select from idem_events where event >= $3 and event < $1 || '0'))`
)

// HasUnscoped reports whether a source has events of an account without a scope.
func HasUnscoped(ctx context.Context, db DB, source string) (bool, error) {
	return askScopes(ctx, db, source, `select $1 <> '' and exists (`+unscoped+`)`)
}

// HasMixedScopes reports whether a source has events with a scope and events without one. It looks into the
// primary key three times, however many events there are.
func HasMixedScopes(ctx context.Context, db DB, source string) (bool, error) {
	return askScopes(ctx, db, source, `select exists (`+unscoped+`) and `+scoped)
}

// IsUnscoped reports whether a source has events without a scope, none with one, and no program that stores
// either: no worker is alive, and no event has arrived for a day.
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
