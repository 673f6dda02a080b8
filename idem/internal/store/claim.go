package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Claim is an event that a worker has claimed.
type Claim struct {
	Event
	Number   int           // of the event's claims, counted from 1: the latest one holds it
	Attempts int           // that failed
	Crashes  int           // claims of a process that died, this one not among them
	Waited   time.Duration // since it arrived
	Trace    string
}

// Search describes the events that a claim looks for.
type Search struct {
	Source  string
	After   time.Time // due after that; the position of an earlier search, zero to search all
	Limit   int       // how many
	Worker  int64     // that claims: see [Worker]
	Running []string  // the row keys of events that the worker knows of; others that it has claimed are free again
	Crashed int       // from so many crashes on, an event must run alone

	WithCrashed bool // one that must run alone may be claimed, too
	Untried     bool // only one that was never claimed
}

// Claims is the result of a search: the claimed events, and the place up to which it has looked.
type Claims struct {
	Search    Search
	Claims    []Claim
	Seen      int       // rows that were looked at
	Last      time.Time // when the last of them was due
	Postponed int       // rows that wait for one that is being processed, and will be due again in a moment
}

// MayBeMore reports whether more may be due: the search has ended at its limit, or there
// was none.
func (f Claims) MayBeMore() bool { return f.Seen == f.Search.Limit }

// claimSettings are for the claim only. It walks along indexes and stops early;
// a plan that was made while the tables were empty would read and sort them,
// and would be kept. A plan for each claim would take longer than the claim.
const claimSettings = `
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)`

// claim looks at events that are due and not held: an event that dead workers
// had claimed has crashed; one that this worker has claimed without knowing of it, since
// the answer was lost, has not. The first of its
// lane is claimed. Another one is held back until it is promoted, if the payload
// of the first can be locked, see the package comment; if not, that one is being
// processed, and this one is looked at again a moment later.
//
// Only e is locked, and so seen as it is now; p is as it was when the statement began.
// An event that another worker has claimed meanwhile, and given up, may not be due any
// more: it is left alone, by its starts.
const claim = `
with due as materialized (
	select e.event, e.crashes + coalesce(e.claimed_by <> $4, false)::int as crashes, p.lane, p.due_at, p.occurred_at, p.received_at, p.body, p.trace
	from idem_payloads p join idem_events e using (event)
	where p.source = $1 and p.due_at > $2 and p.due_at <= now()
	  and e.state = 'pending' and (e.claimed_by is null or e.claimed_by = $4 and e.event <> all ($7)
	    or e.claimed_by <> $4 and not exists (select from idem_workers w where w.id = e.claimed_by))
	  and ($5 or e.crashes + coalesce(e.claimed_by <> $4, false)::int < $6) and (not $8 or e.starts = 0)
	  and e.starts = (select began.starts from idem_events began where began.event = p.event)
	order by p.due_at limit $3
	for update of e skip locked
), heads as materialized (
	select due.*, head.event as head from due cross join lateral (
		select p.event from idem_payloads p where p.lane = due.lane order by ` + order + ` limit 1) head
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
), later as (
	update idem_payloads p set due_at = case when locked.event is null then now() + ` + postpone + ` end
	from heads left join locked on locked.event = heads.head
	where p.event = heads.event and heads.head <> heads.event
	returning p.due_at
)
select h.event, h.due_at, (select count(due_at) from later),
	c.type, c.key, c.starts, c.attempts, h.crashes, now() - h.received_at, h.occurred_at, case when c.event is not null then h.body end, h.trace
from heads h left join claimed c using (event)
order by h.due_at`

// FindClaims claims events that are due, the first ones of their lanes.
func FindClaims(ctx context.Context, db DB, s Search) (found Claims, err error) {
	b := &pgx.Batch{}
	b.Queue(claimSettings)
	b.Queue(claim, s.Source, s.After, s.Limit, s.Worker, s.WithCrashed, s.Crashed, s.Running, s.Untried).Query(func(rows pgx.Rows) error {
		return found.collect(rows)
	})
	found.Search = s
	err = ReadCommitted(ctx, db, b)
	return found, err
}

func (f *Claims) collect(rows pgx.Rows) error {
	var event string
	var due time.Time
	var eventType, key, trace *string
	var number, attempts, crashes *int
	var waited time.Duration
	var occurred *time.Time
	var body []byte
	_, err := pgx.ForEachRow(rows, []any{&event, &due, &f.Postponed, &eventType, &key, &number, &attempts, &crashes, &waited, &occurred, &body, &trace}, func() error {
		f.Seen++
		f.Last = due
		if number == nil { // not claimed
			return nil
		}
		c := Claim{Number: *number, Attempts: *attempts, Crashes: *crashes, Waited: waited}
		c.setRowKey(event)
		c.Type, c.Key, c.OccurredAt, c.Payload = *eventType, *key, timeOrZero(occurred), body
		if trace != nil {
			c.Trace = *trace
		}
		f.Claims = append(f.Claims, c)
		return nil
	})
	return err
}
