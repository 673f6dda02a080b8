package store

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// Found is what is stored of an event.
type Found struct {
	State    string // "" when nothing is
	Key      string // the entity that it was first stored with
	Conflict bool   // another body is stored with its id
	First    bool   // this delivery is the first to conflict
}

// Look reads the state of an event, and records it if another body is stored,
// unless the event is being processed: it waits for nobody.
func Look(b *pgx.Batch, e Event, f *Found) {
	const look = `
with conflict as (
	update idem_events set conflict_at = now() where event = (
		select event from idem_events where event = $1 and body_hash <> $2 and conflict_at is null for update skip locked)
	returning event
)
select state, key, coalesce(body_hash <> $2, false), exists (select from conflict) from idem_events where event = $1`
	b.Queue(look, e.RowKey(), hash(e.Payload)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&f.State, &f.Key, &f.Conflict, &f.First)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}
