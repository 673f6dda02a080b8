package idem

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

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
	DoneAt     time.Time // done: when the attempt that processed it began
	ConflictAt time.Time // when it was first delivered with another body: see operator.Operator.Conflicts; zero if never
	Carrier    string    // of the delivery that stored it: see [Tracer]
}

// Format implements [fmt.Formatter]: with any verb it prints as its Event does, with its state. LastError
// is not printed, since a handler may have written a person's data into it.
func (e StoredEvent) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%v State:%s Attempts:%d Crashes:%d ReceivedAt:%s}", e.Event, e.State, e.Attempts, e.Crashes, e.ReceivedAt.Format(time.RFC3339Nano))
}

// LogValue implements [slog.LogValuer]: it is logged as it prints.
func (e StoredEvent) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("event", e.Event), slog.String("state", string(e.State)), slog.Int("attempts", e.Attempts),
		slog.Int("crashes", e.Crashes), slog.Time("received_at", e.ReceivedAt))
}

// atOnce is the number of events that are read with their bodies in one statement.
const atOnce = 100

// List reads the events that f chooses, by the provider's time and then by arrival, with
// their payloads and why they are not done. They are those that were there at the start, as they
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

// Choose returns f with its Events set to those that f chooses now, in the order of List; an
// empty list if there are none, and then the returned filter chooses nothing. An action with the returned filter is bound to them: it leaves an event alone that came
// after Choose, and one that is in none of the filter's States any more.
//
//	shown, err := operator.Choose(ctx, f)
//	… // show len(shown.Events) and List(ctx, shown) to a person, and ask
//	n, err := operator.Discard(ctx, shown, reason)
func (c *Common) Choose(ctx context.Context, f Filter) (Filter, error) {
	keys, err := c.find(ctx, f)
	if err != nil {
		return Filter{}, fmt.Errorf("idem: choosing events: %w", explain(err))
	}
	f.Events = append([]string{}, keys...)
	return f, nil
}

// load reads events by their row keys, those that are not done.
func (c *Common) load(ctx context.Context, keys []string) iter.Seq2[StoredEvent, error] {
	return func(yield func(StoredEvent, error) bool) {
		for some := range slices.Chunk(keys, atOnce) {
			rows, err := timed(ctx, func(ctx context.Context) ([]store.Row, error) { return store.Load(ctx, c.pool, some) })
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
		LastError: r.LastError, ReceivedAt: r.ReceivedAt, DueAt: r.DueAt, DoneAt: r.DoneAt, ConflictAt: r.ConflictAt, Carrier: r.Trace,
	}
}

// find lists the row keys of the events that f chooses.
func (c *Common) find(ctx context.Context, f Filter) ([]string, error) {
	return timed(ctx, func(ctx context.Context) ([]string, error) { return store.Find(ctx, c.pool, f.of(c.source.Name())) })
}
