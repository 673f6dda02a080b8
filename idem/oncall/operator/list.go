package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// Page is one page of the events that a filter chooses: see [Operator.Page].
type Page struct {
	Events []idem.StoredEvent
	Next   Place // of the next page, which may have no events; zero when there is none
}

// Place is an event's position in the order of arrival.
type Place struct {
	At    time.Time
	Event string // source/scope/id
}

// Page returns up to n events that f chooses, the newest first. The first page is at
// the zero Place; for the next one, pass Next of the page before. It reads only
// events that are not done.
func (o *Operator) Page(ctx context.Context, f idem.Filter, before Place, n int) (Page, error) {
	var last store.Place
	keys, err := query(ctx, o, listing, func(ctx context.Context, db *pgxpool.Pool) (keys []string, err error) {
		keys, last, err = store.FindPage(ctx, db, o.in.Rows(f), store.Place(before), n)
		return keys, err
	})
	if err != nil {
		return Page{}, err
	}
	var p Page
	if len(keys) == n {
		p.Next = Place(last)
	}
	p.Events, err = o.list(ctx, func(ctx context.Context, db *pgxpool.Pool) ([]store.Row, error) { return store.Load(ctx, db, keys) })
	return p, err
}

// Count counts the events that f chooses.
func (o *Operator) Count(ctx context.Context, f idem.Filter) (int64, error) {
	return query(ctx, o, "counting events", func(ctx context.Context, db *pgxpool.Pool) (int64, error) { return store.Count(ctx, db, o.in.Rows(f)) })
}

// WithID returns the events of an id, of every account, in any state: more than
// one where accounts use the same. Where there is none, id may be a row key, as [Operator.ActionEvents] returns it.
func (o *Operator) WithID(ctx context.Context, id string) ([]idem.StoredEvent, error) {
	all, err := o.list(ctx, func(ctx context.Context, db *pgxpool.Pool) ([]store.Row, error) {
		return store.WithID(ctx, db, o.SourceName(), id)
	})
	if e := store.EventOf(id); err == nil && len(all) == 0 && e.Source == o.SourceName() && e.ID != "" {
		all, err = o.WithID(ctx, e.ID)
		return slices.DeleteFunc(all, func(s idem.StoredEvent) bool { return s.Scope != e.Scope }), err
	}
	return all, err
}

// OfKey returns the latest events of an entity, limit at most, also those that are done,
// in the order of arrival: those of the accounts that are given, or of all if scopes is nil.
//
// It is slow: without an index for it, it reads the events of all entities, ten million
// in a second or two. See [Operator.ScanOfKey].
func (o *Operator) OfKey(ctx context.Context, scopes []string, key string, limit int) ([]idem.StoredEvent, error) {
	return o.list(ctx, func(ctx context.Context, db *pgxpool.Pool) ([]store.Row, error) {
		return store.OfKey(ctx, db, o.SourceName(), scopes, key, limit)
	})
}

// ScanOfKey returns how many events, of all sources, [Operator.OfKey] reads to find those of
// an entity, as Postgres estimates it: tell people before they wait. It is 0 where this
// index was made by hand. It takes 6 to 8 seconds to make for five million events, and 76
// MB; each event that is stored then writes 6.5 kB of log instead of 4.8, with random ids
// right after a checkpoint:
//
//	create index concurrently idem_events_key on idem_events (key);
func (o *Operator) ScanOfKey(ctx context.Context) (events int64, err error) {
	return query(ctx, o, "looking for an index", func(ctx context.Context, db *pgxpool.Pool) (int64, error) { return store.CountByKey(ctx, db) })
}

// listing is the work of most methods of this file.
const listing = "listing events"

// list returns the events of a query.
func (o *Operator) list(ctx context.Context, rows func(context.Context, *pgxpool.Pool) ([]store.Row, error)) ([]idem.StoredEvent, error) {
	found, err := query(ctx, o, listing, rows)
	return each(found, o.in.Stored), err
}

// Blocked is an entity with later events that wait for its first one that is not done.
type Blocked struct {
	Scope, Key string
	ID         string        // of the first event
	Type       string        // of the first event
	State      idem.State    // of the first event: parked, or pending until its next attempt; "" when its row was deleted by hand
	LastError  string        // why it failed
	Age        time.Duration // since the first event arrived, by the database's clock
	DueAt      time.Time     // of its next attempt; zero when there will be none
	Waiting    int64         // events behind it
}

// Blocked lists up to n of the entities with events that wait for an earlier one, the oldest first, and counts all of
// them; n is 1 or more. They wait behind a parked event until that is replayed, requeued or discarded, and behind one
// that failed until its next attempt.
func (o *Operator) Blocked(ctx context.Context, n int) (oldest []Blocked, all int64, err error) {
	if n < 1 {
		return nil, 0, fmt.Errorf("operator: listing blocked entities: n is %d: give 1 or more", n)
	}
	var sum store.BlockedSum
	rows, err := query(ctx, o, "listing blocked entities", func(ctx context.Context, db *pgxpool.Pool) (rows []store.Blocked, err error) {
		rows, sum, err = store.ListBlocked(ctx, db, o.SourceName(), n)
		return rows, err
	})
	return each(rows, func(b store.Blocked) Blocked {
		return Blocked{
			Scope: b.Scope, Key: b.Key, ID: b.ID, Type: b.Type, State: idem.State(b.State),
			LastError: b.LastError, Age: b.Age, DueAt: b.DueAt, Waiting: b.Waiting,
		}
	}), sum.Entities, err
}

// Conflict is an event that was delivered again with another body.
type Conflict struct {
	idem.Event            // its OccurredAt and Payload are empty
	State      idem.State // of the first body
	At         time.Time  // when another body first came
}

// Conflicts lists up to n of the events that were delivered again with another body, the latest first, until Prune
// forgets them, and counts all of them; n is 1 or more. Only one of the two was processed, the first unless that had
// failed: an id was used twice, or two accounts (sandbox and production, say) deliver to one address without a Scope
// each. See [Operator.PlanRescope] before you give them one.
//
// Bodies are compared byte for byte, by a short hash. A provider that formats
// the same event in another way is listed, too.
func (o *Operator) Conflicts(ctx context.Context, n int) (latest []Conflict, all int64, err error) {
	if n < 1 {
		return nil, 0, fmt.Errorf("operator: listing conflicts: n is %d: give 1 or more", n)
	}
	rows, err := query(ctx, o, "listing conflicts", func(ctx context.Context, db *pgxpool.Pool) (rows []store.Conflict, err error) {
		rows, all, err = store.ListConflicts(ctx, db, o.SourceName(), n)
		return rows, err
	})
	return each(rows, func(r store.Conflict) Conflict {
		return Conflict{Event: idem.Event(r.Event), State: idem.State(r.State), At: r.At}
	}), all, err
}

// State counts the source's events that are not done, as a person on call looks at them first.
type State struct {
	idem.Stats

	Failing             idem.Backlog // events that have failed, and are tried again by themselves, but for those that a person takes care of
	FailingAcknowledged int64        // these
	FailingTypes        []OfType     // the five types that most failing events have, the most frequent first

	Standing         int64 // events that wait for a parked one, unless a person takes care of that one
	StandingEntities int64 // entities of those

	Pauses []Pause // that are in effect

	Workers []Worker // of all processes, also dead ones until others notice; none of a receiver without workers

	found diagnosis.Source
}

// Findings returns what is wrong with the events, the cause first, with the default limits of package health. The texts
// are in the language of a tag like pt-BR, in English or Portuguese. Evidence has errors of handlers, which may name
// persons.
func (s State) Findings(language string) []check.Finding {
	l, _ := lang.Of(language)
	return s.found.Findings(l)
}

// Worker is a call of [idem.Inbox.Run] or its like, by its last sign of life.
type Worker struct {
	Host      string // of the process
	PID       int
	StartedAt time.Time
	Silent    time.Duration // since its last sign of life
	Alive     bool          // Silent is less than 12 seconds
}

// OfType counts the events of a type.
type OfType struct {
	Type   string
	Events int64
}

// State counts the source's events that are not done. It reads all of those, and nothing of others.
func (o *Operator) State(ctx context.Context) (State, error) {
	s, err := query(ctx, o, "counting events", func(ctx context.Context, db *pgxpool.Pool) (store.Snapshot, error) {
		return store.ReadSnapshot(ctx, db, o.SourceName(), 0, statementTime)
	})
	if err != nil {
		return State{}, err
	}
	return State{
		Stats:               o.in.Stats(s),
		Failing:             idem.Backlog{Events: s.Failing.Events, Oldest: s.Failing.Oldest},
		FailingAcknowledged: s.Failing.Known,
		FailingTypes:        each(s.Failing.Types, func(t store.OfType) OfType { return OfType(t) }),
		Standing:            s.Standing.Waiting, StandingEntities: s.Standing.Entities,
		Pauses: each(s.Pauses, func(p store.Pause) Pause { return Pause(p) }),
		Workers: each(s.Workers, func(w store.Worker) Worker {
			return Worker{Host: w.Host, PID: w.PID, StartedAt: w.StartedAt, Silent: w.Silent.Abs(), Alive: w.Alive()}
		}),
		found: diagnosis.Source{Name: o.SourceName(), Snapshot: s, Limits: diagnosis.Defaults, Timeout: o.Inbox.Timeout},
	}, nil
}
