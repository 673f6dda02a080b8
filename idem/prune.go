package idem

import (
	"context"
	"fmt"
)

const pruneBatch = 1000

// Prune forgets the source's done and unhandled events that arrived longer ago
// than Retention, by the database's clock, with their payloads, and returns how
// many. Events whose work failed stay until they are replayed: somebody's money
// is in them.
//
// It deletes in batches of 1,000, each committed on its own, and holds no lock
// that a delivery waits for: run it as often as you like, from any process.
// After it an event that comes again would run again, so keep Retention above
// the provider's longest redelivery.
func (p *Processor) Prune(ctx context.Context) (deleted int64, err error) {
	const prune = `
with old as (
	select source, scope, id from idem_events
	where source = $1 and state in ('done', 'unhandled') and received_at < now() - $2::interval
	limit $3 for update skip locked
), bodies as (
	delete from idem_payloads b using old where (b.source, b.scope, b.id) = (old.source, old.scope, old.id)
)
delete from idem_events e using old where (e.source, e.scope, e.id) = (old.source, old.scope, old.id)`
	for {
		tag, err := p.pool.Exec(ctx, prune, p.source.Name(), p.Retention, pruneBatch)
		if err != nil {
			return deleted, fmt.Errorf("idem: pruning events: %w", err)
		}
		deleted += tag.RowsAffected()
		if tag.RowsAffected() < pruneBatch {
			return deleted, nil
		}
	}
}
