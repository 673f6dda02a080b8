package outbox

import (
	"sync"
	"time"
)

// outage holds the knowledge of an [Outbox]'s workers about their broker.
//
// One message that fails, and a broker that is away, look the same. What tells them apart is another message: once one
// has gone through since a message failed, and it fails again, the broker was there, and the failure is the message's.
type outage struct {
	mu        sync.Mutex
	since     time.Time         // of the first failure since a message went through; zero while the broker takes messages
	err       error             // the last one
	published uint64            // messages that went through
	failed    map[string]uint64 // how many had, when a message failed last: by ID, of those that have not gone through
}

// maxFailed is the number of messages whose failures are remembered. A message that is forgotten is believed once more.
const maxFailed = 10_000

func newOutage() *outage { return &outage{failed: make(map[string]uint64)} }

// fail notes that the broker did not take a message, and reports whether that is the message's own failure.
func (o *outage) fail(id string, err error) (own bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, again := o.failed[id]
	if len(o.failed) >= maxFailed {
		clear(o.failed)
	}
	o.failed[id] = o.published
	if again && o.published > before {
		return true
	}
	if o.since.IsZero() {
		o.since = time.Now()
	}
	o.err = err
	return false
}

// end notes that the broker took a message.
func (o *outage) end(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failed, id)
	o.published++
	o.since, o.err = time.Time{}, nil
}

// now returns a nil error while there is no outage.
func (o *outage) now() (since time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.err
}
