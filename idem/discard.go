package idem

import (
	"context"
	"errors"
	"fmt"
)

// Discard gives up the events that f chooses: their work will not be done, and a
// delivery of one is a duplicate. Their payloads go, unless KeepPayloads is set;
// the reason stays in the table, as their last error, until Prune forgets them.
// Later events of their keys go on. It returns how many were discarded.
//
// Name what to discard: the zero Filter is refused. In a transaction of yours,
// db, it is part of what you do instead of the work.
func (p *Processor) Discard(ctx context.Context, db DB, f Filter, reason string) (int64, error) {
	if f.States == nil && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil {
		return 0, errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes or States")
	}
	const discard = `
with gone as (
	update idem_events set state = 'discarded', last_error = $3, due_at = null
	where event = any ($1) and state = any ($2)
	returning event, key
), bodies as (
	delete from idem_payloads b using gone e cross join lateral ` + payloadOf + ` p where b.ctid = p.ctid and not $4
), kept as (
	update idem_payloads b set done = true, queue = null from gone e cross join lateral ` + payloadOf + ` p
	where b.ctid = p.ctid and $4
)
select count(*), pg_notify('idem_inbox', '')::text from gone`
	found, err := p.find(ctx, db, f)
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	var n int64
	err = db.QueryRow(ctx, discard, found, f.states(), errorText(errors.New("discarded: "+reason)), p.KeepPayloads).Scan(&n, nil)
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", err)
	}
	return n, nil
}
