package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Trouble sums up the events of a source that fail and are tried again, or those that are parked.
type Trouble struct {
	Events       int64         // without the acknowledged ones, as all that follows
	Oldest       time.Duration // since the first one arrived
	Types        []OfType      // the five most frequent types
	Error        string        // the most frequent last error
	Same         int64         // how many have it
	Waiting      int64         // the events that wait behind them
	Acknowledged int64
}

// OfType counts the events of a type.
type OfType struct {
	Type   string
	Events int64
}

// FindTrouble sums up the events of a source that fail, or those that are parked. Of an error it takes the first
// line: what follows is the stack of a panic, which differs.
func FindTrouble(ctx context.Context, db DB, source string, parked bool) (t Trouble, err error) {
	const find = `
with trouble as materialized (
	select p.event, p.received_at, e.type, e.state, split_part(coalesce(e.last_error, ''), E'\n', 1) as error, ` + isAcknowledged + ` as acknowledged
	from idem_payloads p ` + openEvent + `
	where p.source = $1 and case when $2 then e.state = 'parked' and p.due_at is null
		else e.state = 'pending' and ` + hasFailed + ` end
), open as materialized (
	select * from trouble where not acknowledged
), errors as (
	select error, count(*) as n from open group by error order by n desc, error limit 1
)
select (select count(*) from open), (select coalesce(now() - min(received_at), '0') from open),
	array(select json_build_object('type', type, 'events', count(*)) from open group by type order by count(*) desc, type limit 5),
	coalesce((select error from errors), ''), coalesce((select n from errors), 0),
	(select coalesce(sum(p.waiting), 0)::bigint ` + heads + ` where p.event in (select event from open)),
	(select count(*) from trouble where acknowledged)`
	rows, _ := db.Query(ctx, find, source, parked)
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Trouble])
}
