package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// flights are the events that are being processed in this process. All
// deliveries of one event that arrive meanwhile share one attempt and its
// result, so that a storm of one event takes one connection.
type flights struct {
	mu      sync.Mutex
	flights map[string]*flight
}

// flight is one event; outcome and err are set before done is closed.
type flight struct {
	done    chan struct{}
	outcome Outcome
	err     error
}

// do runs lead for the first of concurrent deliveries with a key, and has the
// others wait for its result.
func (fs *flights) do(ctx context.Context, key string, lead func() (Outcome, error)) (Outcome, error) {
	f, first := fs.join(key)
	if !first {
		return f.wait(ctx)
	}
	f.outcome, f.err = Retrying, errors.New("the delivery's goroutine ended")
	defer fs.publish(key, f)
	f.outcome, f.err = lead()
	return f.outcome, f.err
}

func (fs *flights) join(key string) (f *flight, first bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.flights[key]; ok {
		return f, false
	}
	if fs.flights == nil {
		fs.flights = make(map[string]*flight)
	}
	f = &flight{done: make(chan struct{})}
	fs.flights[key] = f
	return f, true
}

func (fs *flights) publish(key string, f *flight) {
	fs.mu.Lock()
	delete(fs.flights, key)
	fs.mu.Unlock()
	close(f.done)
}

// wait returns what the first delivery came to: what it stored is a duplicate
// for this one.
func (f *flight) wait(ctx context.Context) (Outcome, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return Retrying, errors.New("another delivery of the same event is still being processed")
	}
	if f.outcome.Acknowledged() {
		return Duplicate, nil
	}
	return f.outcome, fmt.Errorf("a concurrent delivery of the same event failed: %w", f.err)
}
