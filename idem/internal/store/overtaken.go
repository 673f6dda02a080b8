package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Overtaken is an event of which a later one of its lane was done before.
type Overtaken struct {
	Event Event // its names, as of By
	By    Event // the last of its lane that was done before it
	More  int   // others
}

// FindOvertaken finds those of the events with these keys that are not done, or were done after
// a later one of their lane. They are sorted as lanes are. It reads the whole of idem_events,
// unless that has an index that begins with key.
func FindOvertaken(ctx context.Context, db DB, keys []string) ([]Overtaken, error) {
	const place = `
select e.event, e.type, e.key, substring(e.event from '^[^/]*/[^/]*/') as account,
	coalesce(e.occurred_at, e.received_at) as at, e.received_at, coalesce(e.done_at, e.received_at) as done_at, e.state
from idem_events e `
	const find = `
with own as materialized (` + place + `join unnest($1::text[]) as k (event) using (event) where e.key <> ''),
later as materialized (` + place + `join (select distinct key from own) k using (key) where e.state = 'done')
select * from (
	select distinct on (own.at, own.received_at, own.event) own.event, own.type, own.key, later.event, later.type, later.key,
		count(*) over (partition by own.event) - 1
	from own join later on later.key = own.key and later.account = own.account
		and (later.at, later.received_at, later.event) > (own.at, own.received_at, own.event)
		and (own.state <> 'done' or later.done_at < own.done_at)
	order by own.at, own.received_at, own.event, later.at desc, later.received_at desc, later.event desc
) found`
	rows, _ := db.Query(ctx, find, keys)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Overtaken, err error) {
		var own, by string
		err = row.Scan(&own, &o.Event.Type, &o.Event.Key, &by, &o.By.Type, &o.By.Key, &o.More)
		o.Event.setRowKey(own)
		o.By.setRowKey(by)
		return o, err
	})
}
