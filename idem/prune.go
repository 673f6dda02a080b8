package idem

import (
	"context"
	"fmt"
)

// pruneBlocks is how much of the table one statement of Prune looks at: 1 MB,
// which is some 7,000 events.
const pruneBlocks = 128

// Prune forgets the source's done and unhandled events that arrived longer ago
// than Retention, by the database's clock, with their payloads, and returns how
// many. Events whose work failed stay until they are replayed: somebody's money
// is in them.
//
// It reads the table once from end to end (there is no index for it, because
// every delivery would pay for that), a megabyte at a time, each committed on
// its own, and waits for no delivery: run it daily from any process. After it an
// event that comes again would run again, so keep Retention above the provider's
// longest redelivery.
func (p *Processor) Prune(ctx context.Context) (deleted int64, err error) {
	const prune = `
with old as (
	delete from idem_events where ctid = any (array(
		select ctid from idem_events
		where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1::bigint + $2)::tid
		  and starts_with(event, $3) and state in ('done', 'unhandled') and received_at < now() - $4::interval
		for update skip locked))
	returning event
), bodies as (
	delete from idem_payloads b using old where b.event = old.event
)
select count(*) from old`
	var blocks, n int64
	const size = `select pg_relation_size('idem_events') / current_setting('block_size')::bigint`
	if err := p.pool.QueryRow(ctx, size).Scan(&blocks); err != nil {
		return 0, fmt.Errorf("idem: pruning events: %w", err)
	}
	for block := int64(0); block < blocks; block += pruneBlocks {
		err := p.pool.QueryRow(ctx, prune, block, pruneBlocks, p.source.Name()+"/", p.Retention).Scan(&n)
		if err != nil {
			return deleted, fmt.Errorf("idem: pruning events: %w", err)
		}
		deleted += n
	}
	return deleted, nil
}
