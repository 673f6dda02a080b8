package idem

import (
	"sync"
	"time"
)

// failing is the events that workers failed to process since they last succeeded.
type failing struct {
	mu     sync.Mutex
	events map[string]bool // by id; one that fails again and again is one
	last   time.Time
}

// maxFailing limits the events that are counted one by one.
const maxFailing = 1000

// note notes the outcome of an attempt of a worker.
func (f *failing) note(o Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o.Outcome {
	case Done:
		clear(f.events)
	case Retrying, Parked:
		if f.events == nil {
			f.events = make(map[string]bool)
		}
		if key := o.Event.Scope + "/" + o.Event.ID; len(f.events) < maxFailing {
			f.events[key] = true
		}
		f.last = time.Now()
	}
}

// since returns how many events have failed in a row, if the last one did so less than limit ago:
// after that its state in Postgres tells.
func (f *failing) since(limit time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.last) > limit {
		return 0
	}
	return len(f.events)
}
