package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// SearchParts calls found with the row key of each event of a source, in any state, of which the id or
// entity has a part, until that returns false. It reads the whole of idem_events.
func SearchParts(ctx context.Context, tx DB, source, part string, found func(rowKey string) bool) error {
	const search = `
select event, ''::bytea from idem_events
where starts_with(event, $1) and (position($2 in substr(event, length($1) + 1)) > 0 or position($2 in key) > 0)`
	return each(ctx, tx, func(key string, _ []byte) bool { return found(key) }, search, sourcePrefix(source), part)
}

// SearchBodies calls found with the row key and the body of each event of a source with a body that is
// kept and has these bytes, until that returns false. It reads all bodies.
func SearchBodies(ctx context.Context, tx DB, source string, bytes []byte, found func(rowKey string, body []byte) bool) error {
	const search = `
select event, body from idem_payloads where source = $1 and position($2::bytea in body) > 0 union all
select event, body from idem_archive where starts_with(event, $3) and position($2::bytea in body) > 0`
	return each(ctx, tx, found, search, source, bytes, sourcePrefix(source))
}

func each(ctx context.Context, tx DB, found func(string, []byte) bool, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var key string
	var body []byte
	for rows.Next() {
		if err := rows.Scan(&key, &body); err != nil {
			return err
		}
		if !found(key, body) {
			return nil
		}
	}
	return rows.Err()
}

// InTime calls f with a transaction that reads; Postgres gives up its statements after a
// time. complete is false if it did.
func InTime(ctx context.Context, db interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}, milliseconds int64, f func(DB) error,
) (complete bool, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1::bigint::text, true)`, milliseconds); err != nil {
			return err
		}
		return f(tx)
	})
	if pgtx.SQLState(err) == "57014" && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}
