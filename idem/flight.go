package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// flights are the events in work in this process. All deliveries of one event
// that arrive while it is worked on share one attempt and its result, so that a
// storm of one event takes one connection.
type flights struct {
	mu    sync.Mutex
	inAir map[eventID]*flight
}

type eventID struct{ source, scope, id string }

// flight is one event in work; outcome and err are set before done is closed.
type flight struct {
	done    chan struct{}
	outcome Outcome
	err     error
}

// join returns the flight of an event, and whether the caller is the first on
// board: it flies, and must land.
func (fs *flights) join(e Event) (f *flight, first bool) {
	id := eventID{e.Source, e.Scope, e.ID}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.inAir[id]; ok {
		return f, false
	}
	if fs.inAir == nil {
		fs.inAir = make(map[eventID]*flight)
	}
	f = &flight{done: make(chan struct{})}
	fs.inAir[id] = f
	return f, true
}

func (fs *flights) land(e Event, f *flight, o Outcome, err error) {
	fs.mu.Lock()
	delete(fs.inAir, eventID{e.Source, e.Scope, e.ID})
	fs.mu.Unlock()
	f.outcome, f.err = o, err
	close(f.done)
}

// wait returns what the first delivery's attempt led to: what it stored is a
// duplicate for this one.
func (f *flight) wait(ctx context.Context) (Outcome, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return Retrying, errors.New("a delivery of the same event is still being worked on")
	}
	if f.outcome.Acknowledged() {
		return Duplicate, nil
	}
	return f.outcome, fmt.Errorf("another delivery of the same event, at the same time, failed: %w", f.err)
}
