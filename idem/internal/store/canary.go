package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// CanaryType is the type of a canary's event. No provider has it: a genuine delivery of it that is not a dry run
// is an event of an unknown type.
const CanaryType = "paghooks.canary"

// NoteCanary records that a canary of a source has come through a broker.
func NoteCanary(ctx context.Context, db DB, source string) error {
	const note = `
insert into idem_events as e (event, type, key, state, done_at) values ($1, $2, '', 'done', clock_timestamp())
on conflict (event) do update set received_at = excluded.received_at, done_at = excluded.done_at where e.type = excluded.type`
	_, err := db.Exec(ctx, note, canaryKey(source), CanaryType)
	return err
}

// LastCanary returns the time of the last NoteCanary for source, or the zero time.
func LastCanary(ctx context.Context, db DB, source string) (at time.Time, err error) {
	err = db.QueryRow(ctx, `select done_at from idem_events where event = $1 and done_at is not null`, canaryKey(source)).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}

// canaryID is the id of the row with the time at which a canary last came through a broker.
const canaryID = "relayed-canary"

func canaryKey(source string) string { return Event{Source: source, ID: canaryID}.RowKey() }
