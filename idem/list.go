package idem

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Filter chooses events that are not done or discarded. The zero value means all
// of the source's that are unhandled or parked. States replaces that; each other
// field that is set narrows it. An empty list that is not nil chooses nothing.
type Filter struct {
	States []State  // StateUnhandled, StateParked; others that are not done
	Scopes []string // accounts
	Types  []string // the provider's event names
	Keys   []string // the entities that events are about
	IDs    []string // the provider's event ids

	// Events that arrived at ReceivedFrom or later, and before ReceivedUntil, by the
	// database's clock. Zero does not narrow.
	ReceivedFrom, ReceivedUntil time.Time
}

// StoredEvent is an event as it is stored. Payload is nil if the body is no longer
// stored, as of most events that are done.
type StoredEvent struct {
	Event

	State      State
	Attempts   int       // that failed
	Crashes    int       // processes that died while they processed it, or were cut off from Postgres
	LastError  string    // why the last attempt failed; "" if none has
	ReceivedAt time.Time // when it was stored
	DueAt      time.Time // pending: no attempt before; zero while it waits for an earlier event
	Carrier    string    // of the delivery that stored it: see [Tracer]
}

// atOnce is how many events are read with their bodies in one statement.
const atOnce = 100

// List reads the events that f chooses, oldest first, with their payloads and
// why they are not done. They are those that were there at the start, as they
// are when their turn comes. It ends after the first error.
func (c *Common) List(ctx context.Context, f Filter) iter.Seq2[StoredEvent, error] {
	return func(yield func(StoredEvent, error) bool) {
		keys, err := c.find(ctx, f)
		if err != nil {
			yield(StoredEvent{}, fmt.Errorf("idem: listing events: %w", explain(err)))
			return
		}
		c.load(ctx, keys)(yield)
	}
}

// load reads events by their row keys, those that are not done.
func (c *Common) load(ctx context.Context, keys []string) iter.Seq2[StoredEvent, error] {
	return func(yield func(StoredEvent, error) bool) {
		for some := range slices.Chunk(keys, atOnce) {
			rows, err := store.Load(ctx, c.pool, some)
			if err != nil {
				yield(StoredEvent{}, fmt.Errorf("idem: listing events: %w", explain(err)))
				return
			}
			for _, r := range rows {
				if !yield(storedEvent(r), nil) {
					return
				}
			}
		}
	}
}

func storedEvent(r store.Row) StoredEvent {
	return StoredEvent{
		Event: Event(r.Event), State: State(r.State), Attempts: r.Attempts, Crashes: r.Crashes,
		LastError: r.LastError, ReceivedAt: r.ReceivedAt, DueAt: r.DueAt, Carrier: r.Trace,
	}
}

// find lists the row keys of the events that f chooses.
func (c *Common) find(ctx context.Context, f Filter) ([]string, error) {
	return store.Find(ctx, c.pool, c.filter(f))
}

func (c *Common) filter(f Filter) store.Filter {
	return store.Filter{
		Source: c.source.Name(), States: f.states(), Scopes: f.Scopes, Types: f.Types, Keys: f.Keys, IDs: f.IDs,
		From: f.ReceivedFrom, Until: f.ReceivedUntil,
	}
}

func (f Filter) states() []string {
	if f.States == nil {
		return []string{store.Unhandled, store.Parked}
	}
	states := make([]string, len(f.States))
	for i, s := range f.States {
		states[i] = string(s)
	}
	return states
}
