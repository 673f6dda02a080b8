package count

import (
	"sync"
	"time"
)

// Failures counts the events that workers failed to process since they last succeeded.
type Failures struct {
	mu     sync.Mutex
	events map[string]bool // by key; an event that fails again and again counts once
	last   time.Time
}

// maxFailing limits the events that are counted one by one.
const maxFailing = 1000

// Done notes that an event was processed.
func (f *Failures) Done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.events)
}

// Failed notes that an attempt at the event with this key failed.
func (f *Failures) Failed(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		f.events = make(map[string]bool)
	}
	if len(f.events) < maxFailing {
		f.events[key] = true
	}
	f.last = time.Now()
}

// Since returns the number of events that have failed in a row, if the last one failed less than limit ago,
// and otherwise 0: later the state in Postgres shows failing events.
func (f *Failures) Since(limit time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.last) > limit {
		return 0
	}
	return len(f.events)
}
