package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Blocked is the first event of a lane, which others wait for.
type Blocked struct {
	Event
	State     string // "" when its row is gone
	LastError string
	Age       time.Duration
	DueAt     time.Time
	Waiting   int64
}

// heads are the first events of lanes.
const heads = `
from (
	select distinct on (p.lane) p.lane, p.event, p.due_at, p.held, p.received_at, count(*) over (partition by p.lane) - 1 as waiting
	from idem_payloads p
	where p.lane is not null and p.source = $1
	order by p.lane, ` + order + `
) h left join lateral (select * from idem_events where event = h.event offset 0) e on true`

// blocked are the heads of lanes in which events wait.
const blocked = heads + `
where h.waiting > 0 and (e.state is distinct from 'pending' or h.due_at is null or h.due_at > now())`

// CountBlocked counts the entities that ListBlocked lists.
func CountBlocked(ctx context.Context, db DB, source string) (n int64, err error) {
	err = db.QueryRow(ctx, `select count(*) `+blocked, source).Scan(&n)
	return n, err
}

// BlockedSum counts all entities that are blocked, and the events that wait in them.
type BlockedSum struct{ Entities, Waiting int64 }

// ListBlocked lists the lanes of a source in which events wait for one that is
// not due: it is parked, it waits for its next attempt, or its row is gone. It reads the n oldest, and
// counts all.
func ListBlocked(ctx context.Context, db DB, source string, n int) (oldest []Blocked, all BlockedSum, err error) {
	const list = `
select h.event, coalesce(e.type, ''), coalesce(e.key, ''), coalesce(e.state, ''), coalesce(e.last_error, ''),
	now() - h.received_at, h.due_at, h.waiting, count(*) over (), sum(h.waiting) over ()::bigint ` + blocked + ` order by h.received_at, h.event limit $2`
	rows, _ := db.Query(ctx, list, source, n)
	oldest, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocked, err error) {
		var key string
		var due *time.Time
		err = row.Scan(&key, &b.Type, &b.Key, &b.State, &b.LastError, &b.Age, &due, &b.Waiting, &all.Entities, &all.Waiting)
		b.setRowKey(key)
		b.DueAt = timeOrZero(due)
		return b, err
	})
	return oldest, all, err
}

// Standing counts the events behind parked ones.
type Standing struct {
	Lanes, Waiting int64    // how many, and how many events wait in them
	Key, Head      string   // of the oldest lane: its entity, and the id of the parked event
	Behind         int64    // how many events wait there
	Types          []string // theirs
}

// FindStanding looks for lanes of a source in which events wait for a parked one, and for
// those that need not wait any more, and have not gone on yet.
func FindStanding(ctx context.Context, db DB, source string) (s Standing, err error) {
	const find = `
with heads as materialized (
	select h.lane, h.event, h.received_at, h.waiting + h.held::int as waiting, e.key ` + heads + `
	where e.state = 'parked' and (h.waiting > 0 or h.held)
)
select (select count(*) from heads), (select sum(waiting) from heads), key, substring(event from '^[^/]*/[^/]*/(.*)$'), waiting,
	array(select distinct e.type from idem_payloads p ` + openEvent + ` where p.lane = heads.lane and (p.held or p.event <> heads.event) order by 1)
from heads order by received_at, event limit 1`
	err = db.QueryRow(ctx, find, source).Scan(&s.Lanes, &s.Waiting, &s.Key, &s.Head, &s.Behind, &s.Types)
	if errors.Is(err, pgx.ErrNoRows) {
		return Standing{}, nil
	}
	return s, err
}
