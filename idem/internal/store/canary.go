package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// canaryID is the id of the row that says when a canary last came through a broker.
const canaryID = "relayed-canary"

func canaryKey(source string) string { return Event{Source: source, ID: canaryID}.RowKey() }

// NoteCanary writes that a canary of a source came through a broker.
func NoteCanary(ctx context.Context, db DB, source, eventType string) error {
	const note = `
insert into idem_events as e (event, type, key, state, done_at) values ($1, $2, '', 'done', clock_timestamp())
on conflict (event) do update set received_at = excluded.received_at, done_at = excluded.done_at where e.type = excluded.type`
	_, err := db.Exec(ctx, note, canaryKey(source), eventType)
	return err
}

// LastCanary returns when that was last; zero for never.
func LastCanary(ctx context.Context, db DB, source string) (at time.Time, err error) {
	err = db.QueryRow(ctx, `select done_at from idem_events where event = $1 and done_at is not null`, canaryKey(source)).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}
