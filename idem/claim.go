package idem

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// claim is an event that a worker has taken.
type claim struct {
	event    Event
	row      string // the event's row
	queue    string
	at       time.Time // which claim of the event it is; zero if it was not taken
	suspect  bool      // a worker died with it
	attempts int       // that failed
	crashes  int
}

// lease is how long a worker may take to begin: from then on it holds the
// event's row, as long as it lives. A claim whose worker died is free after it.
const lease = 10 * time.Second

const claimTimeout = time.Minute

// claimHeads takes events that are due, the first of each queue: it goes from
// queue to queue, from $1 on up to $2, by one step in an index each, so that
// what waits behind the first of a queue costs nothing. An event that a worker
// died with is a suspect: it is returned, but not taken; nor is one that another
// claim takes in the same moment.
//
// Each lock of a row is written to Postgres's log. One with an xmax of 0 has
// been locked by nobody, so only the others are locked, to pass over those that
// are locked still.
const claimHeads = `
with recursive ring as (
	(select queue, event from idem_payloads where queue > $1 and queue < $2
	 order by queue, coalesce(occurred_at, received_at), received_at limit 1)
	union all
	select head.* from ring cross join lateral (
		select p.queue, p.event from idem_payloads p where p.queue > ring.queue and p.queue < $2
		order by p.queue, coalesce(p.occurred_at, p.received_at), p.received_at limit 1) head
), heads as (
	select queue, due.* from ring cross join lateral (
		select e.event, claimed_at is not null or crashes is not null as suspect from idem_events e
		where e.event = ring.event and state = 'pending' and (due_at is null or due_at <= now())
		  and (e.xmax = 0 or exists (select from idem_events l where l.event = e.event for update skip locked))) due
	limit $3
), claimed as (
	update idem_events set claimed_at = now(), due_at = now() + $4::interval
	where event = any (array(select event from heads where not suspect))
	  and state = 'pending' and claimed_at is null and crashes is null and (due_at is null or due_at <= now())
	returning event, type, key, attempts, crashes, claimed_at
)
select heads.event, queue, suspect, type, key, occurred_at, body, attempts, coalesce(crashes, 0), claimed_at
from heads left join claimed using (event)
left join lateral (select occurred_at, body from idem_payloads p where p.event = claimed.event) payload on true
order by queue`

// claimSuspect takes an event that a worker died with.
const claimSuspect = `
with suspect as (
	select event from idem_events
	where event = $1 and state = 'pending' and (due_at is null or due_at <= now()) for update skip locked
), claimed as (
	update idem_events e set claimed_at = now(), due_at = now() + $2::interval,
		crashes = coalesce(crashes, 0) + (claimed_at is not null)::integer
	from suspect where e.event = suspect.event
	returning e.event, type, key, attempts, crashes, claimed_at
)
select event, queue, true, type, key, occurred_at, body, attempts, coalesce(crashes, 0), claimed_at
from claimed join idem_payloads using (event)`

// claimSettings are for claimHeads only. Its one good plan walks along indexes:
// without them Postgres plans anew each time, or keeps a plan from when the
// tables were empty. No claim needs to be on disk: the event is. Who locks a row
// in the moment before it is taken is not waited for long.
const claimSettings = `
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
	set_config('jit', 'off', true), set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '500ms', true)`

// claimHeads takes up to n events of the queues after one.
func (i *Inbox) claimHeads(ctx context.Context, after string, n int) (claims []*claim, err error) {
	b := &pgx.Batch{}
	b.Queue("begin isolation level read committed")
	b.Queue(claimSettings)
	b.Queue(claimHeads, after, i.source.Name()+"0", n, lease).Query(func(rows pgx.Rows) (err error) { // "0" comes after "/"
		claims, err = pgx.CollectRows(rows, scanClaim)
		return err
	})
	b.Queue("commit")
	ctx, cancel := whole(ctx)
	defer cancel()
	err = i.pool.SendBatch(ctx, b).Close()
	return claims, err
}

// claimSuspect takes a suspect; nil if it is not to be had.
func (i *Inbox) claimSuspect(ctx context.Context, row string) (*claim, error) {
	ctx, cancel := whole(ctx)
	defer cancel()
	rows, err := i.pool.Query(ctx, claimSuspect, row, lease)
	if err != nil {
		return nil, err
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanClaim)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return c, err
}

// whole is a context for a claim, which is not cut off when the workers are
// stopped: what Postgres gives to nobody would wait for its lease to end, and be
// a suspect then.
func whole(ctx context.Context) (context.Context, context.CancelFunc) {
	claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishGrace, cancel) })
	return claiming, func() { stop(); cancel() }
}

func scanClaim(row pgx.CollectableRow) (*claim, error) {
	c := &claim{}
	var eventType, key *string
	var occurred, claimed *time.Time
	var attempts *int
	err := row.Scan(&c.row, &c.queue, &c.suspect, &eventType, &key, &occurred, &c.event.Payload, &attempts, &c.crashes, &claimed)
	if err != nil || claimed == nil {
		return c, err
	}
	c.at, c.attempts = *claimed, *attempts
	e := &c.event
	e.Source, e.Scope, e.ID = parseRowKey(c.row)
	e.Type, e.Key, e.OccurredAt = *eventType, *key, timeOrZero(occurred)
	return c, nil
}
