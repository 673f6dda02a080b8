package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// flights are the events that are being processed in this process. All
// deliveries of one event with the same body that arrive meanwhile share one attempt
// and its result, so that a storm of one event takes one connection.
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight
}

// flight is one event; result is set before done is closed.
type flight struct {
	done   chan struct{}
	result result
}

// do runs lead for the first of concurrent deliveries with a key, and has the
// others wait for its result.
func (fs *flights) do(ctx context.Context, key string, lead func() result) result {
	f, first := fs.join(key)
	if !first {
		return f.wait(ctx)
	}
	f.result = result{outcome: Retrying, err: errors.New("the delivery's goroutine ended")}
	defer fs.publish(key, f)
	f.result = lead()
	return f.result
}

func (fs *flights) join(key string) (f *flight, first bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.byKey[key]; ok {
		return f, false
	}
	if fs.byKey == nil {
		fs.byKey = make(map[string]*flight)
	}
	f = &flight{done: make(chan struct{})}
	fs.byKey[key] = f
	return f, true
}

func (fs *flights) publish(key string, f *flight) {
	fs.mu.Lock()
	delete(fs.byKey, key)
	fs.mu.Unlock()
	close(f.done)
}

// wait returns the outcome of the first delivery: an event that it stored is a duplicate
// for this one.
func (f *flight) wait(ctx context.Context) result {
	select {
	case <-f.done:
	case <-ctx.Done():
		return result{outcome: Retrying, err: errors.New("another delivery of the same event is still being processed")}
	}
	if f.result.outcome.Acknowledged() {
		return result{outcome: Duplicate}
	}
	return result{outcome: f.result.outcome, err: fmt.Errorf("a concurrent delivery of the same event failed: %w", f.result.err)}
}
