package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/internal/outage"
)

// Search describes the events that a claim looks for.
type Search struct {
	Source  string
	After   time.Time // only events that are due later: the position of an earlier search; zero for all
	Limit   int       // the largest number of claims
	Worker  int64     // the ID of the claiming [Worker]
	Running []string  // the row keys of the worker's known claims; its other claims may be claimed again
	Crashed int       // the number of crashes from which an event must run alone

	WithCrashed bool     // an event that must run alone may be claimed
	Without     []string // no events of these types
	Crowd       bool     // take many events that wait for others out of the search: the last searches met no others
}

// Claim is an event that a worker has claimed.
type Claim struct {
	Event
	State    string        // of a claim for a replay: the event stays in it until the attempt ends
	Number   int           // the fencing token: it grows with each claim of the event, and only the latest claim may end the attempt
	Attempts int           // failed ones
	Crashes  int           // earlier claims whose process died
	Waited   time.Duration // since the event arrived
	Trace    string

	SinceFailure *time.Duration // since the last failed attempt, even if a person has requeued the event; nil if none has failed
	Again        bool           // the worker had claimed it already, and nobody has ended that claim
}

// Claims is the result of a search: the claimed events, and the extent of the search.
type Claims struct {
	Search    Search
	Claims    []Claim
	Seen      int       // rows that were looked at
	Last      time.Time // when the last of these rows was due
	Postponed int       // rows that wait for an event that is being processed, and will be due again in a moment
	Paused    int       // rows that were put off to the end of a pause
}

// MayBeMore reports whether more events may be due: the search has ended at its limit, or there was no
// search.
func (f Claims) MayBeMore() bool { return f.Seen == f.Search.Limit }

// ClaimEvents claims due events that are the first of their lanes. If the reply to COMMIT was lost, found
// still lists the claims, and [MarkStored] rejects the ones that did not commit.
func ClaimEvents(ctx context.Context, db DB, s Search) (found Claims, err error) {
	b := &pgx.Batch{}
	b.Queue(claimSettings)
	b.Queue(claim, s.Source, s.After, s.Limit, s.Worker, s.WithCrashed, s.Crashed, s.Running, append([]string{}, s.Without...), s.Crowd).Query(func(rows pgx.Rows) error {
		return found.collect(rows)
	})
	found.Search = s
	err = ReadCommitted(ctx, db, b)
	return found, err
}

// claimSettings are settings for a claim and [PutOff] only, which walk along indexes and stop early. A plan that was
// made while the tables were empty would read and sort the tables, and would be kept. Planning each claim
// would take longer than the claim.
const claimSettings = `
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)`

// claim looks at pending events that are due. An event that a dead worker had claimed has crashed; an event
// that this worker has claimed without knowing, since the answer was lost, has not. The first event of a lane
// is claimed. An event behind the first is held back until it is promoted, if the payload of the first, or of the
// second before it, can be locked: see the package comment. Otherwise the event before it is being processed, and
// the event is due again a moment later. In a crowd, many due events of the same lanes are held back with it. An event
// that is paused is put off, whatever its place.
//
// Only e is locked, and so seen as it is now; p is as it was when the statement began. An event that another
// worker has claimed meanwhile, and given up, may not be due any more: the comparison of starts leaves it
// alone.
var claim = `
with due as materialized (
	select e.event, e.crashes + coalesce(e.claimed_by <> $4, false)::int as crashes, p.lane, p.due_at, p.occurred_at, p.received_at, p.body, p.trace,
		now() - (p.failures -> -1 ->> 'at')::timestamptz as since_failure, coalesce(e.claimed_by = $4, false) as again,
		` + pausedUntil("$1", "e.type", "e.key") + ` as paused
	from idem_payloads p join idem_events e using (event)
	where p.source = $1 and p.due_at > $2 and p.due_at <= now()
	  and e.state = 'pending' and (e.claimed_by is null or e.claimed_by = $4 and e.event <> all ($7)
	    or e.claimed_by <> $4 and not exists (select from idem_workers w where w.id = e.claimed_by))
	  and ($5 or e.crashes + coalesce(e.claimed_by <> $4, false)::int < $6) and e.type <> all ($8)
	  and e.starts = (select began.starts from idem_events began where began.event = p.event)
	order by p.due_at limit $3
	for update of e skip locked
), put_off as (
	update idem_payloads p set due_at = due.paused from due where p.event = due.event and due.paused is not null
	returning p.event
), heads as materialized (
	select due.*, head.event as head from due cross join lateral (
		select p.event from idem_payloads p where p.lane = due.lane order by ` + order + ` limit 1) head
	where due.paused is null
), claimed as (
	update idem_events e set starts = starts + 1, crashes = heads.crashes, claimed_at = now(), claimed_by = $4
	from heads where e.event = heads.event and heads.head = heads.event
	  and (heads.crashes < $6 or heads.event = (select min(event) from heads where crashes >= $6))
	returning e.event, e.type, e.key, e.starts, e.attempts
), locked as materialized (
	select p.event from idem_payloads p
	where p.event = any (array(select head from heads where head <> event))
	  and coalesce(p.lane, '') <> '' -- still; "is not null" has Postgres read all of an index
	for update skip locked
), seconds as materialized (
	select p.event, p.lane, coalesce(p.occurred_at, p.received_at) as at, p.received_at from idem_payloads p
	where p.event = any (array(
		select (select p.event from idem_payloads p where p.lane = behind.lane order by ` + order + ` offset 1 limit 1)
		from (
			select distinct heads.lane from heads left join locked on locked.event = heads.head
			where heads.head <> heads.event and ($9 or locked.event is null)
		) behind))
	  and coalesce(p.lane, '') <> ''
	for update skip locked
), crowd as materialized (
	select p.event from idem_payloads p
	where p.event = any (array(
		select p.event from (
			select * from idem_payloads p
			where $9 and exists (select from seconds) and p.source = $1 and p.due_at > $2 and p.due_at <= now()
			order by p.due_at limit ` + crowdSize + `
		) p join seconds s using (lane) where (` + order + `) > (s.at, s.received_at, s.event) and p.event <> all (array(select event from heads))))
	for update skip locked
), held as (
	update idem_payloads p set due_at = null from crowd where p.event = crowd.event
), later as (
	update idem_payloads p set due_at = case when locked.event is null and not coalesce((` + order + `) > (s.at, s.received_at, s.event), false)
		then now() + ` + postpone + ` end
	from heads left join locked on locked.event = heads.head left join seconds s on s.lane = heads.lane
	where p.event = heads.event and heads.head <> heads.event
	returning p.due_at
)
select h.event, h.due_at, (select count(due_at) from later), (select count(*) from put_off),
	coalesce(c.type, ''), coalesce(c.key, ''), coalesce(c.starts, 0), coalesce(c.attempts, 0), h.crashes, now() - h.received_at, h.occurred_at,
	case when c.event is not null then h.body end, coalesce(h.trace, ''), h.since_failure, h.again
from due h left join claimed c using (event)
order by h.due_at`

// PostponeTime is the time after which an event is due again that waits for an event being processed, or that
// was claimed and not processed. postpone is the same in SQL.
const PostponeTime = 100 * time.Millisecond

const postpone = `interval '100 milliseconds'`

// crowdSize is the number of due events that a search with Crowd looks at for others of the same lanes.
const crowdSize = `2000`

func (f *Claims) collect(rows pgx.Rows) error {
	var key string
	var c Claim
	scans := []any{&key, &f.Last, &f.Postponed, &f.Paused, &c.Type, &c.Key, &c.Number, &c.Attempts, &c.Crashes, &c.Waited, orZero(&c.OccurredAt), &c.Payload, &c.Trace, &c.SinceFailure, &c.Again}
	_, err := pgx.ForEachRow(rows, scans, func() error {
		f.Seen++
		if c.Number > 0 { // the event was claimed
			c.setRowKey(key)
			f.Claims = append(f.Claims, c)
		}
		return nil
	})
	return err
}

// ClaimEvent claims one event for a replay, if it is open, and no living worker has claimed it. ok is false
// otherwise. The event stays in its state, and keeps its place: a process that dies leaves it as it was.
func ClaimEvent(ctx context.Context, db DB, key string, worker int64) (c Claim, ok bool, err error) {
	const claim = `
with own as materialized (
	select e.event, p.occurred_at, p.received_at, p.body, p.trace, now() - (p.failures -> -1 ->> 'at')::timestamptz as since_failure
	from idem_payloads p join idem_events e using (event)
	where p.event = $1 and e.` + isOpen + ` and (e.claimed_by is null or not exists (select from idem_workers w where w.id = e.claimed_by))
	  and e.starts = (select began.starts from idem_events began where began.event = p.event) -- see claim
	for update of e skip locked
), claimed as (
	update idem_events e set starts = starts + 1, crashes = crashes + (claimed_by is not null)::int, claimed_at = now(), claimed_by = $2
	from own where e.event = own.event
	returning e.event, e.type, e.key, e.state, e.starts, e.attempts, e.crashes
)
select c.event, c.type, c.key, c.state, c.starts, c.attempts, c.crashes, now() - own.received_at, own.occurred_at, own.body,
	coalesce(own.trace, ''), own.since_failure
from claimed c join own using (event)`
	err = readCommitted(ctx, db, claim, []any{key, worker}, func(rows pgx.Rows) error {
		scans := []any{&key, &c.Type, &c.Key, &c.State, &c.Number, &c.Attempts, &c.Crashes, &c.Waited, orZero(&c.OccurredAt), &c.Payload, &c.Trace, &c.SinceFailure}
		_, err := pgx.ForEachRow(rows, scans, func() error {
			c.setRowKey(key)
			ok = true
			return nil
		})
		return err
	})
	return c, ok, err
}

// IsOpen reports whether an event may be processed, and whether a living worker has claimed it.
func IsOpen(ctx context.Context, db DB, key string) (open, claimed bool, err error) {
	const look = `
select ` + isOpen + `, exists (select from idem_workers w where w.id = e.claimed_by) from idem_events e where event = $1`
	err = db.QueryRow(ctx, look, key).Scan(&open, &claimed)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, false, nil
	}
	return open, claimed, err
}

// End is the end of a claim on an event that is not done.
type End struct {
	State      string        // Pending, Parked or Unhandled
	Attempts   int           // the number to add
	LastError  *string       // nil leaves the last error as it is
	Wait       time.Duration // Pending: the time until the event is due
	LeavesLane bool          // the event holds no other event, and those behind it go on
	AsItWas    bool          // the event keeps its place and its time: no attempt was made
	Returned   bool          // the handler has returned, and so the event does not kill processes: its crashes are forgotten
}

// EndClaim ends a claim. ended is false if the claim has ended already, or another worker has claimed the
// event since.
func EndClaim(ctx context.Context, db DB, c Claim, end End) (ended bool, err error) {
	err = fitting(end.LastError, func(lastError *string) error {
		b := &pgx.Batch{}
		b.Queue(endClaim, c.RowKey(), c.Number, end.State, end.Attempts, lastError, end.Wait, end.LeavesLane, end.Returned, c.Lane(), end.AsItWas).QueryRow(func(row pgx.Row) error {
			return row.Scan(&ended)
		})
		if end.LeavesLane {
			b.Queue(promoteWaiting, c.Lane())
		}
		return ReadCommitted(ctx, db, b)
	})
	return ended, err
}

var endClaim = `
with settled as (
	update idem_events set state = $3, attempts = attempts + $4, last_error = coalesce($5, last_error),
		crashes = case when $8 then 0 else crashes end, claimed_at = null, claimed_by = null
	where event = $1 and ` + isOpen + ` and starts = $2 and claimed_by is not null -- a repetition counts nothing
	returning event
), body as (
	update idem_payloads p set
		due_at = case when $10 then p.due_at when $3 = 'pending' then now() + $6::interval end,
		lane = case when $10 then p.lane when not $7 then $9 end, -- a replay has claimed it outside of its lane
		failures = ` + failuresAnd("$5") + `
	from settled where p.event = settled.event
)
select count(*) = 1 from settled`

// MaxPutOff is the number of events that a PutOff looks at.
const MaxPutOff = 1000

// PutOff puts off events that are due, among the first MaxPutOff of a source, and returns how many. As a claim does, it
// locks the row of an event before it changes its body, and leaves alone what others have locked.
func PutOff(ctx context.Context, db DB, source string, h outage.Holding) (n int, err error) {
	const putOff = `
with due as materialized (
	select event, due_at from idem_payloads where source = $1 and due_at <= now() order by due_at limit $6
), held as materialized (
	select e.event, due.due_at, failing.most
	from due join idem_events e using (event) join unnest($2::text[], $3::interval[]) as failing (type, most) using (type)
	where e.state = 'pending' and e.claimed_by is null
	for update of e skip locked
), places as (
	select event, least($4::interval + row_number() over (order by due_at) * $5::interval, most) as wait from held
)
update idem_payloads p set due_at = now() + places.wait from places where p.event = places.event and p.due_at <= now()`
	b := &pgx.Batch{}
	b.Queue(claimSettings)
	b.Queue(putOff, source, h.Types, h.Most, h.First, outage.Pace, MaxPutOff).Exec(func(tag pgconn.CommandTag) error {
		n = int(tag.RowsAffected())
		return nil
	})
	err = ReadCommitted(ctx, db, b)
	return n, err
}
