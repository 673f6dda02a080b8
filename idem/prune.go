package idem

import (
	"context"
	"fmt"
)

// pruneBlocks is how much of the table one statement of Prune looks at: 1 MB,
// which is some 7,000 events.
const pruneBlocks = 128

// Prune forgets the source's done, unhandled and discarded events that arrived
// longer ago than Retention, by the database's clock, with their payloads, and
// returns how many. Failed ones stay until they are replayed or discarded,
// unless FailedRetention is set. PayloadRetention deletes bodies before that.
// What dead workers have left behind of done events goes, too, and what people
// have who deleted events by hand.
//
// It reads the tables once from end to end (there is no index for it, because
// every delivery would pay for that), a megabyte at a time, each committed on
// its own, and waits for no delivery: run it daily from any process. After it an
// event that comes again would run again, so keep Retention above the provider's
// longest redelivery.
func (p *Processor) Prune(ctx context.Context) (deleted int64, err error) {
	const events = `
with old as (
	delete from idem_events where ctid = any (array(
		select ctid from idem_events
		where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1::bigint + $2)::tid
		  and starts_with(event, $3)
		  and (state in ('done', 'unhandled', 'discarded') and received_at < now() - $4::interval
		    or state = 'parked' and received_at < now() - $5::interval)
		for update skip locked))
	returning event, key
), bodies as (
	delete from idem_payloads b using old e cross join lateral ` + payloadOf + ` p where b.ctid = p.ctid
)
select count(*) from old`
	const payloads = `
with old as (
	delete from idem_payloads where ctid = any (array(
		select ctid from idem_payloads
		where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1::bigint + $2)::tid
		  and starts_with(event, $3) and done and received_at < now() - $4::interval
		for update skip locked))
	returning event
)
select count(*) from old`
	const strays = `
with claims as (
	delete from idem_claims c where until < now()
	  and not exists (select from idem_events e where e.event = c.event and e.state = 'pending')
)
delete from idem_payloads b where queue is not null
  and not exists (select from idem_events e where e.event = b.event and e.state in ('pending', 'parked'))`
	var never any // is null: older than that is nothing
	failed := never
	if p.ParkedRetention > 0 {
		failed = p.ParkedRetention
	}
	deleted, err = p.walk(ctx, "idem_events", events, p.Retention, failed)
	if err == nil && p.PayloadRetention > 0 {
		_, err = p.walk(ctx, "idem_payloads", payloads, p.PayloadRetention)
	}
	if err == nil {
		_, err = p.pool.Exec(ctx, strays)
	}
	if err != nil {
		return deleted, fmt.Errorf("idem: pruning events: %w", explain(err))
	}
	return deleted, nil
}

// walk runs a statement for each stretch of a table, and adds up what it says.
func (p *Processor) walk(ctx context.Context, table, statement string, args ...any) (total int64, err error) {
	var blocks, n int64
	const size = `select pg_relation_size($1::regclass) / current_setting('block_size')::bigint`
	if err := p.pool.QueryRow(ctx, size, table).Scan(&blocks); err != nil {
		return 0, err
	}
	for block := int64(0); block < blocks; block += pruneBlocks {
		args := append([]any{block, pruneBlocks, p.source.Name() + "/"}, args...)
		if err := p.pool.QueryRow(ctx, statement, args...).Scan(&n); err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
