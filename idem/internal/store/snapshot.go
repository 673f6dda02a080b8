package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Snapshot sums up the tables for a source: its events that are not done, its workers and its pauses.
type Snapshot struct {
	Events
	Workers []Worker // also dead ones, until others notice
	Pauses  []Pause  // that are in effect
	Most    Most     // so many events were looked at; 0 is all
}

// Alive returns the number of workers that are alive.
func (s Snapshot) Alive() (n int) {
	for _, w := range s.Workers {
		if w.Alive() {
			n++
		}
	}
	return n
}

// TakeSnapshot reads what is known of a source, and no event that is done. It looks at most events that are not done,
// 0 is all.
func TakeSnapshot(ctx context.Context, db DB, source string, most Most) (s Snapshot, err error) {
	s.Most = most
	if s.Events, err = sumUp(ctx, db, source, most); err != nil {
		return s, err
	}
	if s.Workers, err = ListWorkers(ctx, db, source); err != nil {
		return s, err
	}
	s.Pauses, err = ListPauses(ctx, db, source)
	return s, err
}

// ReadSnapshot is [TakeSnapshot] in a transaction of its own. Postgres ends a statement of it after limit.
func ReadSnapshot(ctx context.Context, pool *pgxpool.Pool, source string, most Most, limit time.Duration) (s Snapshot, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := LimitTime(ctx, tx, limit); err != nil {
			return err
		}
		s, err = TakeSnapshot(ctx, tx, source, most)
		return err
	})
	return s, err
}

// Events sums up the events of a source that are not done.
type Events struct {
	Pending   Open // that have not failed
	Failing   Open // pending, too: an attempt has failed, and they are tried again by themselves
	Parked    Open
	Unhandled Open

	Blocked  int64         `json:"blocked"`  // entities whose events wait for a first one that is parked, or not due
	Standing Standing      `json:"standing"` // events that wait for a parked one
	Due      time.Duration `json:"due"`      // of the event that has been due for longest; one that is being processed is due
	Untaken  time.Duration `json:"untaken"`  // of those that no worker has claimed
	Ahead    time.Duration `json:"ahead"`    // by which an event's arrival is in the future, because the clock was put back
}

// Open sums up the events of a source in one state. All but the last two leave out those that are acknowledged.
type Open struct {
	Events      int64         `json:"events"`
	Oldest      time.Duration `json:"oldest"`        // since the first one arrived
	First       string        `json:"first"`         // the id of that one, if it fails or is parked, as all that follows
	FirstType   string        `json:"first_type"`    //
	Types       []OfType      `json:"types"`         // the five most frequent types
	Error       string        `json:"error"`         // the most frequent last error, its first line: a panic's stacks differ
	Same        int64         `json:"same"`          // how many have it
	Waiting     int64         `json:"waiting"`       // the events that wait behind them
	Known       int64         `json:"known"`         // those that are acknowledged
	OldestOfAll time.Duration `json:"oldest_of_all"` // since the first of all was stored, however often it came since
}

// OfType counts the events of a type.
type OfType struct {
	Type   string `json:"type"`
	Events int64  `json:"events"`
}

// Standing sums up the events that wait for a parked one, of which nobody takes care.
type Standing struct {
	Entities int64  `json:"entities"`
	Waiting  int64  `json:"waiting"` // in all of them
	Key      string `json:"key"`     // the entity of the parked event that came first
	First    string `json:"first"`   // the id of that event
	Behind   int64  `json:"behind"`  // the events that wait for it
	Known    int64  `json:"known"`   // other entities: none of their events came since somebody acknowledged the parked one
}

// Most limits a look at the events of a source that are not done to a number of them, whichever Postgres finds first;
// 0 is no limit.
type Most int

// rows returns the bodies to look at as p. $1 is the source.
func (m Most) rows() string {
	if m == 0 {
		return "idem_payloads p"
	}
	return "(select * from idem_payloads where source = $1 limit " + strconv.Itoa(int(m)) + ") p"
}

// isFailing is the condition that an attempt at a pending event has failed since somebody last had it tried again. Of
// an event that workers have started more than ten times some have, whether the failures were counted or not.
const isFailing = `(e.attempts > 0 or e.crashes > 0 or e.starts > 10)`

// aheadMost is the largest time in the future at which an event may have arrived: commits take their time, and clocks
// are put right by a little all the time.
const aheadMost = `interval '1 minute'`

// sumUp sums up the events of a source that are not done. What is due is found by an index, whatever most is.
func sumUp(ctx context.Context, db DB, source string, most Most) (e Events, err error) {
	sum := `
with open as materialized (
	select p.event, p.lane, coalesce(p.occurred_at, p.received_at) as at, p.received_at, e.received_at as first_at, p.due_at, p.acknowledged_at, ` + isAcknowledged + ` as known,
		case when e.state = 'pending' and ` + isFailing + ` then 'failing' else e.state end as state,
		e.type, e.key, split_part(coalesce(e.last_error, ''), E'\n', 1) as error
	from ` + most.rows() + ` left join lateral (select * from idem_events where event = p.event offset 0) e on true where p.source = $1
), states as (
	select state, count(*) filter (where not known) as events, count(*) filter (where known) as known,
		min(received_at) filter (where not known) as oldest, min(first_at) as oldest_of_all
	from open where state is not null group by state
), trouble as materialized (
	select * from open where state in ('failing', 'parked') and not known
), types as (
	select state, type, count(*) as events, row_number() over (partition by state order by count(*) desc, type) as place from trouble group by state, type
), errors as (
	select distinct on (state) state, error, count(*) as same from trouble group by state, error order by state, count(*) desc, error
), firsts as (
	select distinct on (state) state, event, type from trouble order by state, received_at, event
), lanes as (
	select distinct on (lane) event, state, key, due_at, received_at, count(*) over (partition by lane) - 1 as waiting,
		known and max(received_at) over (partition by lane) <= acknowledged_at as known
	from open where lane is not null order by lane, at, received_at, event
), heads as materialized (
	select * from lanes where waiting > 0
), standing as materialized (
	select * from heads where state = 'parked'
)
select json_build_object(
	'states', (
		select json_object_agg(s.state, json_build_object(
			'events', s.events, 'known', s.known, 'oldest', ` + nanoseconds("s.oldest") + `, 'oldest_of_all', ` + nanoseconds("s.oldest_of_all") + `,
			'first', ` + idOf("f.event") + `, 'first_type', f.type, 'error', r.error, 'same', r.same,
			'types', (select json_agg(json_build_object('type', type, 'events', events) order by place) from types t where t.state = s.state and place <= 5),
			'waiting', (select sum(h.waiting) from heads h join trouble o using (event) where o.state = s.state)))
		from states s left join firsts f using (state) left join errors r using (state)),
	'blocked', (select count(*) from heads where coalesce(state, '') not in ('pending', 'failing') or due_at is null or due_at > now()),
	'standing', (
		select json_build_object('entities', n.entities, 'waiting', n.waiting, 'known', n.known, 'key', f.key, 'first', ` + idOf("f.event") + `, 'behind', f.waiting)
		from (select count(*) filter (where not known) as entities, sum(waiting) filter (where not known) as waiting, count(*) filter (where known) as known from standing) n
		left join (select * from standing where not known order by received_at, event limit 1) f on true),
	'due', (select ` + nanoseconds("min(due_at)") + ` from idem_payloads where source = $1 and due_at <= now()),
	'untaken', (
		select ` + nanoseconds("p.due_at") + ` from idem_payloads p ` + openEvent + `
		where p.source = $1 and p.due_at <= now() and e.state = 'pending' and e.claimed_by is null order by p.due_at limit 1),
	'ahead', (
		select -` + nanoseconds("max(received_at)") + ` from idem_payloads
		where source = $1 and due_at > now() + ` + aheadMost + ` and received_at > now() + ` + aheadMost + `)
)::text`
	var text []byte
	if err := db.QueryRow(ctx, sum, source).Scan(&text); err != nil {
		return e, err
	}
	var states struct{ States map[string]Open }
	if err = json.Unmarshal(text, &states); err == nil {
		err = json.Unmarshal(text, &e)
	}
	e.Pending, e.Failing, e.Parked, e.Unhandled = states.States[Pending], states.States["failing"], states.States[Parked], states.States[Unhandled]
	return e, err
}

// nanoseconds returns the age of a time, in SQL, as a time.Duration; null, which JSON leaves at 0, if there is none.
func nanoseconds(at string) string {
	return "(extract(epoch from now() - " + at + ") * 1000000000)::bigint"
}

// idOf returns the id of an event, in SQL, from its row key.
func idOf(key string) string { return "substring(" + key + " from '^[^/]*/[^/]*/(.*)$')" }
