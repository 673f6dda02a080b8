package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Filter chooses events of a source that are not done. A nil list is no
// condition; an empty one chooses nothing.
type Filter struct {
	Source string
	States []string
	Scopes []string
	Types  []string
	Keys   []string
	IDs    []string
	Events []string // row keys
	Failed bool     // only those of which an attempt has failed

	From, Until time.Time // of arrival, from the first and before the second; zero is no condition
}

// openEvent joins the event of a payload p. It is looked up by its key, one by one: the planner
// would rather read all events through, ten million that are done for the sake
// of a few that are not.
const openEvent = `cross join lateral (select * from idem_events where event = p.event offset 0) e`

// chosen is the condition of a filter, for which args are the arguments. A condition that the
// payload's row knows is asked of it, before the event is looked up.
const chosen = `
from idem_payloads p ` + openEvent + `
where p.source = $1 and e.state = any ($2)
  and ($3::text[] is null or split_part(p.event, '/', 2) = any ($3))
  and ($4::text[] is null or e.type = any ($4))
  and ($5::text[] is null or e.key = any ($5))
  and ($6::text[] is null or substring(p.event from '^[^/]*/[^/]*/(.*)$') = any ($6))
  and ($7::timestamptz is null or e.received_at >= $7) and ($8::timestamptz is null or e.received_at < $8)
  and ($9::text[] is null or p.event = any ($9))
  and (not $10 or e.attempts > 0 or e.crashes > 0 or p.failures is not null)`

func (f Filter) args() []any {
	return []any{f.Source, f.States, escaped(f.Scopes), f.Types, f.Keys, f.IDs, nullTime(f.From), nullTime(f.Until), f.Events, f.Failed}
}

// Find lists the row keys of the events that f chooses, in the order of lanes: by the
// provider's time, and then by arrival.
func Find(ctx context.Context, db DB, f Filter) ([]string, error) {
	rows, _ := db.Query(ctx, `select e.event `+chosen+` order by `+order, f.args()...)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Count counts the events that f chooses.
func Count(ctx context.Context, db DB, f Filter) (n int64, err error) {
	err = db.QueryRow(ctx, `select count(*) `+chosen, f.args()...).Scan(&n)
	return n, err
}

// Place is the place of an event in the order of arrival.
type Place struct {
	At    time.Time
	Event string // its row key
}

// FindPage lists n events that f chooses, newest first, those that arrived before
// a place; a zero place is after all. It returns their row keys and the place of
// the last.
func FindPage(ctx context.Context, db DB, f Filter, before Place, n int) (keys []string, last Place, err error) {
	const page = chosen + ` and ($11::timestamptz is null or (p.received_at, p.event) < ($11, $12))
order by p.received_at desc, p.event desc limit $13`
	rows, _ := db.Query(ctx, `select p.event, p.received_at `+page, append(f.args(), nullTime(before.At), before.Event, n)...)
	_, err = pgx.ForEachRow(rows, []any{&last.Event, &last.At}, func() error { keys = append(keys, last.Event); return nil })
	return keys, last, err
}
