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
//
// Where commits wait for a replica, this one does, too, and for a claim that does:
// the row may be there for all to see because such a wait was broken off, and then
// only the primary has it. A lock is the least that makes a commit wait.
func Look(b *pgx.Batch, e Event, f *Found) {
	const look = `
with locked as (
	select event, ` + onDisk + ` from idem_events
	where event = $1 and current_setting('synchronous_standby_names') <> '' for key share
), conflict as (
	update idem_events set conflict_at = now() where event = (
		select event from idem_events where event = $1 and body_hash <> $2 and conflict_at is null for update skip locked)
	returning event
)
select state, key, coalesce(body_hash <> $2, false), exists (select from conflict) from idem_events
where event = $1 and (select count(*) from locked) >= 0`
	b.Queue(look, e.RowKey(), hash(e.Payload)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&f.State, &f.Key, &f.Conflict, &f.First)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}
