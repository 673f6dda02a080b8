package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Backlog is the events of a source in one state.
type Backlog struct {
	State        string
	Events       int64
	Acknowledged int64 // of these
	Oldest       time.Duration
}

// CountOpen counts the events of a source that are not done, by state.
func CountOpen(ctx context.Context, db DB, source string) ([]Backlog, error) {
	const count = `
select e.state, count(*), count(*) filter (where ` + isAcknowledged + `), now() - min(e.received_at)
from idem_payloads p ` + openEvent + ` where p.source = $1 group by e.state`
	rows, _ := db.Query(ctx, count, source)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Backlog, err error) {
		err = row.Scan(&b.State, &b.Events, &b.Acknowledged, &b.Oldest)
		return b, err
	})
}

// isAcknowledged is the condition that a person takes care of an event e with the body p: since its last
// failure if it is parked, and since whenever if it is tried again by itself.
const isAcknowledged = `(p.acknowledged_at is not null
	and not (e.state = 'parked' and p.acknowledged_at < coalesce((p.failures -> -1 ->> 'at')::timestamptz, p.acknowledged_at)))`

// hasFailed is the condition that an attempt at an event e with the body p has failed. Of an event that workers have
// started more than ten times some have, whether the failures were counted or not.
const hasFailed = `(e.attempts > 0 or e.crashes > 0 or e.starts > 10 or p.failures is not null)`

// Acknowledge sets or takes back that a person takes care of events: of those that are parked by a failure of
// their own, or have failed and are tried again by themselves. It leaves those that are being processed, and
// returns the row keys of the others.
func Acknowledge(ctx context.Context, tx pgx.Tx, keys []string, yes bool) ([]string, error) {
	const acknowledge = `
with chosen as (
	select p.event from idem_payloads p ` + openEvent + `
	where p.event = any ($1) and ($2 or ` + isAcknowledged + `)
	  and (e.state = 'parked' or e.state = 'pending' and ` + hasFailed + `)
	order by p.event for update of p skip locked
)
update idem_payloads p set acknowledged_at = case when $2 then now() end from chosen where p.event = chosen.event
returning p.event, ` + onDisk
	rows, _ := tx.Query(ctx, acknowledge, keys, yes)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (key string, err error) {
		err = row.Scan(&key, nil)
		return key, err
	})
}

// ParkedEvents counts parked events.
type ParkedEvents struct {
	N            int64  // how many nobody has acknowledged since they failed
	ID, Type     string // of the first of those to arrive
	Acknowledged int64  // the others
}

// Most limits a look at the events of a source that are not done to a number of them, whichever Postgres finds first;
// 0 is no limit.
type Most int

// rows returns the bodies to look at as p. $1 is the source.
func (m Most) rows() string {
	if m == 0 {
		return "idem_payloads p"
	}
	return "(select * from idem_payloads where source = $1 limit " + strconv.Itoa(int(m)) + ") p"
}

// FindParked counts the parked events of a source.
func FindParked(ctx context.Context, db DB, source string, most Most) (a ParkedEvents, err error) {
	find := `
with parked as materialized (
	select p.event, p.received_at, e.type, ` + isAcknowledged + ` as acknowledged
	from ` + most.rows() + ` ` + openEvent + `
	where p.source = $1 and p.due_at is null and e.state = 'parked'
)
select n, acknowledged, coalesce(substring(event from '^[^/]*/[^/]*/(.*)$'), ''), coalesce(type, '')
from (select count(*) filter (where not acknowledged) as n, count(*) filter (where acknowledged) as acknowledged from parked) counted
left join (select event, type from parked where not acknowledged order by received_at, event limit 1) first on true`
	err = db.QueryRow(ctx, find, source).Scan(&a.N, &a.Acknowledged, &a.ID, &a.Type)
	return a, err
}

// CountSetAside returns the number of bodies of a source that are set aside, most at most.
func CountSetAside(ctx context.Context, db DB, source string, most int64) (n int64, err error) {
	const count = `
select count(*) from (select from idem_payloads p ` + openEvent + `
where p.source = $1 and p.due_at is null and e.state = 'parked' and e.type = $2 limit $3) aside`
	err = db.QueryRow(ctx, count, source, SetAsideType, most).Scan(&n)
	return n, err
}

// CountStanding counts the events of a source that wait behind a parked event, and their entities.
func CountStanding(ctx context.Context, db DB, source string) (events, lanes int64, err error) {
	const count = `
select coalesce(sum(p.waiting), 0)::bigint, count(*) ` + heads + ` where e.state = 'parked' and p.waiting > 0`
	err = db.QueryRow(ctx, count, source).Scan(&events, &lanes)
	return events, lanes, err
}

// Conflict is an event that was delivered with two bodies.
type Conflict struct {
	Event // without OccurredAt and Payload
	State string
	At    time.Time
}

// ListConflicts lists the n events of a source with the latest conflict, a delivery with another body than
// the first, the newest first. It counts all events with a conflict.
func ListConflicts(ctx context.Context, db DB, source string, n int) (latest []Conflict, all int64, err error) {
	const list = `
select event, type, key, state, conflict_at, count(*) over () from idem_events
where conflict_at is not null and starts_with(event, $1) order by conflict_at desc, event limit $2`
	rows, _ := db.Query(ctx, list, sourcePrefix(source), n)
	latest, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Conflict, err error) {
		var key string
		err = row.Scan(&key, &c.Type, &c.Key, &c.State, &c.At, &all)
		c.setRowKey(key)
		return c, err
	})
	return latest, all, err
}

// FailingEvents are the events of a source that have failed, and are tried again by themselves.
type FailingEvents struct {
	Oldest       time.Duration // since the first one arrived that nobody has acknowledged; 0 if there is none
	Acknowledged int64
}

// FindFailing finds the events of a source that workers failed to process, and try again. An event that they
// have started more than ten times is failing, whether the failures were counted or not.
func FindFailing(ctx context.Context, db DB, source string, most Most) (f FailingEvents, err error) {
	find := `
select coalesce(now() - min(p.received_at) filter (where p.acknowledged_at is null), '0'), count(p.acknowledged_at)
from ` + most.rows() + ` ` + openEvent + `
where p.source = $1 and e.state = 'pending' and (e.attempts > 0 or e.starts > 10)`
	err = db.QueryRow(ctx, find, source).Scan(&f.Oldest, &f.Acknowledged)
	return f, err
}

// OldestDue returns the time for which the first event of a source has been due; 0 if none is due. An event
// that is being processed is due.
func OldestDue(ctx context.Context, db DB, source string) (time.Duration, error) {
	const oldest = `select coalesce(now() - min(p.due_at), '0') from idem_payloads p where p.source = $1 and p.due_at <= now()`
	return age(ctx, db, oldest, source)
}

// OldestUnclaimed returns the time for which the first event of a source that no worker has claimed has been
// due; 0 if none has been due for longer than wait.
func OldestUnclaimed(ctx context.Context, db DB, source string, wait time.Duration) (time.Duration, error) {
	const oldest = `
select coalesce(now() - min(p.due_at), '0') from idem_payloads p ` + openEvent + `
where p.source = $1 and p.due_at <= now() - $2::interval and e.state = 'pending' and e.claimed_by is null`
	return age(ctx, db, oldest, source, wait)
}

// Ahead returns the time by which a source's events are ahead of the database's clock; 0 unless an event's
// time of arrival is more than wait in the future, because the clock was put back. Such an event is due when
// the clock has reached that time again.
func Ahead(ctx context.Context, db DB, source string, wait time.Duration) (time.Duration, error) {
	const ahead = `
select coalesce(max(p.received_at) - now(), '0') from idem_payloads p
where p.source = $1 and p.due_at > now() + $2::interval and p.received_at > now() + $2::interval`
	return age(ctx, db, ahead, source, wait)
}

func age(ctx context.Context, db DB, query string, args ...any) (age time.Duration, err error) {
	err = db.QueryRow(ctx, query, args...).Scan(&age)
	return age, err
}
