package count

import (
	"sync"
	"sync/atomic"
	"time"
)

// Outages counts the failures of outages, and says which of them the log gets: the first one, and one a minute.
type Outages struct {
	lasts atomic.Bool // there is one
	mu    sync.Mutex
	since time.Time // of the first failure
	said  time.Time // when the log got one
	last  time.Time // of the last one
	all   int
	more  int // that the log did not get since
}

const (
	// outageEvery is the interval at which an outage is logged.
	outageEvery = time.Minute
	// outageCalm is the time without a failure after which it is over, at the next success.
	outageCalm = 2 * time.Second
)

// Failed notes a failure, and reports whether the log gets it, and how many it did not get since the last one.
func (o *Outages) Failed() (says bool, more int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if !o.lasts.Swap(true) {
		o.since, o.said, o.all, o.more = now, time.Time{}, 0, 0
	}
	o.last = now
	o.all++
	if now.Sub(o.said) < outageEvery {
		o.more++
		return false, 0
	}
	more, o.said, o.more = o.more, now, 0
	return true, more
}

// Done notes a success. over is set if an outage has ended by that.
func (o *Outages) Done() (lasted time.Duration, failures int, over bool) {
	if !o.lasts.Load() { // of nearly every event
		return 0, 0, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lasts.Load() || time.Since(o.last) < outageCalm {
		return 0, 0, false
	}
	o.lasts.Store(false)
	return o.last.Sub(o.since), o.all, true
}
