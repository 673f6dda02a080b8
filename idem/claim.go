package idem

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// claim is an event that a worker has taken.
type claim struct {
	event    Event
	row      string // the event's row
	queue    string
	place    pgtype.TID // where its payload is
	until    time.Time  // tells it from other claims of the event; zero if it was not taken
	suspect  bool       // a worker died with it
	attempts int        // that failed
	crashes  int
}

// lease is how long a worker may take to begin: from then on it holds the
// event's row, as long as it lives. A claim whose worker died ends with it.
const lease = 10 * time.Second

const claimTimeout = time.Minute

// claimHeads takes events that are due, the first of each queue: it goes from
// queue to queue, from $1 on up to $2, by one step in an index each, so that
// what waits behind the first of a queue costs nothing. An event that a worker
// died with, whose claim is over, is a suspect: it is returned, but not taken;
// nor is one that another process takes in the same moment.
//
// Each lock of a row is written to Postgres's log. One with an xmax of 0 has
// been locked by nobody, so only the others are locked, to pass over those that
// are locked still.
const claimHeads = `
with recursive ring as (
	(select queue, event, ctid as place from idem_payloads where queue > $1 and queue < $2
	 order by queue, coalesce(occurred_at, received_at), received_at limit 1)
	union all
	select head.* from ring cross join lateral (
		select p.queue, p.event, p.ctid from idem_payloads p where p.queue > ring.queue and p.queue < $2
		order by p.queue, coalesce(p.occurred_at, p.received_at), p.received_at limit 1) head
), heads as (
	select queue, place, due.* from ring cross join lateral (
		select e.event, type, key, attempts, coalesce(crashes, 0) as crashes, until is not null or crashes is not null as suspect
		from idem_events e left join idem_claims c using (event)
		where e.event = ring.event and state = 'pending' and (due_at is null or due_at <= now()) and (until is null or until <= now())
		  and (e.xmax = 0 or exists (select from idem_events l where l.event = e.event for update skip locked))) due
	limit $3
), claimed as (
	insert into idem_claims (event, until) select event, now() + $4::interval from heads where not suspect
	on conflict do nothing
	returning event, until
)
select heads.event, queue, place, suspect, type, key, occurred_at, body, attempts, crashes, until
from heads left join claimed using (event)
left join lateral (select occurred_at, body from idem_payloads p where p.ctid = heads.place and claimed.event is not null) payload on true
order by queue`

// claimSuspect takes an event that a worker died with. That counts as a crash,
// if it has not been counted.
const claimSuspect = `
with suspect as (
	select event, type, key, attempts, coalesce(crashes, 0) as crashes from idem_events
	where event = $1 and state = 'pending' and (due_at is null or due_at <= now())
	  and exists (select from idem_payloads b where b.ctid = $3 and b.event = idem_events.event) for update skip locked
), dead as (
	select event from idem_claims where event = $1 and until <= now()
), claimed as (
	insert into idem_claims as c (event, until) select event, now() + $2::interval from suspect
	on conflict (event) do update set until = excluded.until where c.until <= now()
	returning event, until
), counted as (
	update idem_events e set crashes = coalesce(e.crashes, 0) + 1 from claimed join dead using (event) where e.event = dead.event
	returning e.event
)
select suspect.event, queue, b.ctid, true, type, key, occurred_at, body, attempts, crashes + (select count(*) from counted), until
from suspect join claimed using (event) join idem_payloads b on b.ctid = $3`

// endClaims forgets the claims of events that are done.
const endClaims = `delete from idem_claims where event = any ($1)`

// claimSettings are for claimHeads only. Its one good plan walks along indexes:
// without them Postgres plans anew each time, or keeps a plan from when the
// tables were empty. No claim needs to be on disk: the event is. Who locks a row
// in the moment before it is taken is not waited for long.
const claimSettings = `
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
	set_config('jit', 'off', true), set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '500ms', true)`

// claimHeads takes up to n events of the queues after one, and ends the claims of
// those that are done.
func (i *Inbox) claimHeads(ctx context.Context, after string, n int, done []string) (claims []*claim, err error) {
	b := &pgx.Batch{}
	b.Queue("begin isolation level read committed")
	b.Queue(claimSettings)
	if len(done) > 0 {
		b.Queue(endClaims, done)
	}
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
func (i *Inbox) claimSuspect(ctx context.Context, s *claim) (*claim, error) {
	ctx, cancel := whole(ctx)
	defer cancel()
	rows, err := i.pool.Query(ctx, claimSuspect, s.row, lease, s.place)
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
	e := &c.event
	var occurred, until *time.Time
	err := row.Scan(&c.row, &c.queue, &c.place, &c.suspect, &e.Type, &e.Key, &occurred, &e.Payload, &c.attempts, &c.crashes, &until)
	c.until, e.OccurredAt = timeOrZero(until), timeOrZero(occurred)
	e.Source, e.Scope, e.ID = parseRowKey(c.row)
	return c, err
}
