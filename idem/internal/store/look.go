package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Found is the stored state of an event.
type Found struct {
	State         string // "" when nothing is
	Key           string // the entity that it was first stored with
	Conflict      bool   // another body is stored with its id
	FirstConflict bool   // this delivery is the first to conflict
}

// Look reads the state of an event and, unless the event is being processed, records
// that another body is stored. It does not wait for locks.
//
// With synchronous replication it waits for the replica. A commit with a wait that was broken
// off is visible although only the primary has it: such an event must not pass for
// stored. Locking its row is the least that makes this commit wait, and it makes it
// wait for a claim that does.
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
		err := row.Scan(&f.State, &f.Key, &f.Conflict, &f.FirstConflict)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
}

// LookUp is [Look] in a round trip of its own.
func LookUp(ctx context.Context, db DB, e Event) (f Found, err error) {
	b := &pgx.Batch{}
	Look(b, e, &f)
	err = ReadCommitted(ctx, db, b)
	return f, err
}
