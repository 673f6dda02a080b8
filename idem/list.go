package idem

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Filter chooses events that are not done or discarded. The zero value chooses all events of the source that
// are unhandled or parked. States replaces these two states; each other field that is set narrows the choice.
// With Failed and without States, all states are chosen that are not done.
// An empty list that is not nil chooses nothing.
type Filter struct {
	States []State  // StateUnhandled, StateParked; others that are not done
	Scopes []string // accounts
	Types  []string // the provider's event names
	Keys   []string // the entities that events are about
	IDs    []string // the provider's event ids
	Events []string // row keys, as an operator.Plan names those that a person has seen
	Failed bool     // only events with a failed attempt, also those that are tried again by themselves

	// Events that arrived at ReceivedFrom or later, and before ReceivedUntil, by the
	// database's clock. Zero does not narrow.
	ReceivedFrom, ReceivedUntil time.Time
}

// IsZero reports whether nothing of the filter is set.
func (f Filter) IsZero() bool {
	return f.States == nil && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil && f.Events == nil && !f.Failed && f.ReceivedFrom.IsZero() && f.ReceivedUntil.IsZero()
}

// of returns the filter for the events of a source.
func (f Filter) of(source string) store.Filter {
	return store.Filter{
		Source: source, States: f.states(), Scopes: f.Scopes, Types: f.Types, Keys: f.Keys, IDs: f.IDs,
		Events: f.Events, Failed: f.Failed, From: f.ReceivedFrom, Until: f.ReceivedUntil,
	}
}

func (f Filter) states() []string {
	switch {
	case f.States == nil && f.Failed:
		return []string{store.Pending, store.Unhandled, store.Parked}
	case f.States == nil:
		return []string{store.Unhandled, store.Parked}
	}
	states := make([]string, len(f.States))
	for n, s := range f.States {
		states[n] = string(s)
	}
	return states
}

// String returns the filter's conditions in words, for people.
func (f Filter) String() string {
	parts := []string{"states " + strings.Join(f.states(), " ")}
	for _, list := range []struct {
		name   string
		values []string
	}{{"accounts", f.Scopes}, {"types", f.Types}, {"entities", f.Keys}, {"ids", f.IDs}} {
		if list.values != nil {
			parts = append(parts, list.name+" "+strings.Join(list.values, " "))
		}
	}
	if f.Events != nil {
		parts = append(parts, fmt.Sprintf("%d by row key", len(f.Events)))
	}
	if f.Failed {
		parts = append(parts, "failed")
	}
	if !f.ReceivedFrom.IsZero() {
		parts = append(parts, "received from "+f.ReceivedFrom.Format(time.RFC3339))
	}
	if !f.ReceivedUntil.IsZero() {
		parts = append(parts, "received until "+f.ReceivedUntil.Format(time.RFC3339))
	}
	return strings.Join(parts, "; ")
}

// StoredEvent is an event as it is stored. Payload is nil if the body is no longer stored: bodies of done
// events are deleted by default.
type StoredEvent struct {
	Event

	State      State
	Attempts   int       // failed ones
	Crashes    int       // processes that died while they processed the event, or were cut off from Postgres
	LastError  string    // the last attempt's error; "" if none has failed
	ReceivedAt time.Time // when the event was stored
	DueAt      time.Time // pending: no attempt before; zero while the event waits for an earlier one
	DoneAt     time.Time // done: when the successful attempt began
	ConflictAt time.Time // when the event was first delivered with another body: see operator.Operator.Conflicts; zero if never

	// AcknowledgedAt is when a person took note of the event: see operator.Operator.PlanAcknowledge. It is zero if
	// nobody has, and once the event has changed: a parked one has failed again, or one that was tried again by
	// itself is parked.
	AcknowledgedAt time.Time
}

// Format implements [fmt.Formatter]: with any verb a stored event prints as its Event does, with its state.
// LastError may hold a person's data, and is not printed.
func (e StoredEvent) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%v State:%s Attempts:%d Crashes:%d ReceivedAt:%s}", e.Event, e.State, e.Attempts, e.Crashes, e.ReceivedAt.Format(time.RFC3339Nano))
}

// LogValue implements [slog.LogValuer]: a stored event is logged as it prints.
func (e StoredEvent) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("event", e.Event), slog.String("state", string(e.State)), slog.Int("attempts", e.Attempts),
		slog.Int("crashes", e.Crashes), slog.Time("received_at", e.ReceivedAt))
}

// atOnce is the number of events that are read with their bodies in one statement.
const atOnce = 100

// List reads the events that f chooses, by the provider's time and then by arrival, with their payloads and
// errors. The events are chosen at the start, and each is read when its turn comes. List ends after the first
// error.
func (i *Inbox) List(ctx context.Context, f Filter) iter.Seq2[StoredEvent, error] {
	return func(yield func(StoredEvent, error) bool) {
		keys, err := i.find(ctx, f)
		if err != nil {
			yield(StoredEvent{}, fmt.Errorf("idem: listing events: %w", store.Explain(err)))
			return
		}
		for row, err := range i.load(ctx, keys) {
			if !yield(storedEvent(row), err) {
				return
			}
		}
	}
}

// load reads events by their row keys. Events that are done by now are left out.
func (i *Inbox) load(ctx context.Context, keys []string) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for some := range slices.Chunk(keys, atOnce) {
			limited, cancel := context.WithTimeout(ctx, statementTime)
			rows, err := store.Load(limited, i.pool, some)
			cancel()
			if err != nil {
				yield(store.Row{}, fmt.Errorf("idem: listing events: %w", store.Explain(err)))
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func storedEvent(r store.Row) StoredEvent {
	return StoredEvent{
		Event: Event(r.Event), State: State(r.State), Attempts: r.Attempts, Crashes: r.Crashes,
		LastError: r.LastError, ReceivedAt: r.ReceivedAt, DueAt: r.DueAt, DoneAt: r.DoneAt, ConflictAt: r.ConflictAt,
		AcknowledgedAt: r.AcknowledgedAt,
	}
}

// find lists the row keys of the events that f chooses.
func (i *Inbox) find(ctx context.Context, f Filter) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	return store.Find(ctx, i.pool, f.of(i.source.Name()))
}

// SilentSince returns the time at which the newest event of the source was stored, of all accounts, by the
// database's clock, if that is longer ago than d; the zero time if an event was stored since, or none ever was.
// It reads events until it meets one that is newer: after a silence that is all of them, and SilentSince returns an
// error after five minutes.
func (i *Inbox) SilentSince(ctx context.Context, d time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	at, err := store.SilentSince(ctx, i.pool, i.source.Name(), d)
	if err != nil {
		return time.Time{}, fmt.Errorf("idem: reading the last arrival: %w", store.Explain(err))
	}
	return at, nil
}

// Stats counts the source's events that are not done.
type Stats struct {
	Pending   Backlog // stored by an inbox; its workers are next
	Unhandled Backlog // no handler when they arrived
	Parked    Backlog // do not decode, or failed too often; kept until they are replayed, requeued or discarded

	Acknowledged int64 // of all these: a person takes care of them; see operator.Operator.PlanAcknowledge

	BlockedKeys int64 // entities with events that wait for an earlier one; see operator.Operator.Blocked
}

// Backlog is the events in one state.
type Backlog struct {
	Events int64
	Oldest time.Duration // since the oldest arrived, by the database's clock; 0 when there is none
}

// Stats counts the events that are not done. It reads no done events: its cost does not grow with their
// number. Alert on Parked, and on an old Pending event.
func (i *Inbox) Stats(ctx context.Context) (Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	s, err := store.ReadSnapshot(ctx, i.pool, i.source.Name(), 0, statementTime)
	if err != nil {
		return Stats{}, fmt.Errorf("idem: counting events: %w", store.Explain(err))
	}
	return statsOf(s), nil
}

func statsOf(s store.Snapshot) Stats {
	all := func(o store.Open) Backlog { return Backlog{o.Events + o.Known, o.OldestOfAll} }
	pending, failing := all(s.Pending), all(s.Failing)
	return Stats{
		Pending:   Backlog{pending.Events + failing.Events, max(pending.Oldest, failing.Oldest)},
		Unhandled: all(s.Unhandled), Parked: all(s.Parked), BlockedKeys: s.Blocked,
		Acknowledged: s.Pending.Known + s.Failing.Known + s.Parked.Known + s.Unhandled.Known,
	}
}
