package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Import stores events as done of which only the key is known, and when they came: at
// zero, now. Those that are stored are left. It returns how many were not.
func Import(ctx context.Context, db DB, keys []string, times []time.Time) (stored int64, err error) {
	const add = `
insert into idem_events (event, type, key, state, received_at)
select distinct on (event) event, '', '', 'done', least(coalesce(at, now()), now())
from unnest($1::text[], $2::timestamptz[]) as i (event, at)
order by event, at desc nulls first -- in one order, so that two imports do not lock each other out
on conflict do nothing`
	if len(keys) == 0 {
		return 0, nil
	}
	known := make([]*time.Time, len(times))
	for n, t := range times {
		known[n] = nullTime(t)
	}
	b := &pgx.Batch{}
	b.Queue(add, keys, known).Exec(func(tag pgconn.CommandTag) error {
		stored = tag.RowsAffected()
		return nil
	})
	err = ReadCommitted(ctx, db, b)
	return stored, err
}
