package idem

import (
	"sync/atomic"
	"time"
)

// outage is what the workers of an [Outbox] know of their broker. A nil outage never begins.
type outage struct {
	failure atomic.Pointer[failure] // nil while the broker takes messages
}

// failure is why a broker takes no messages.
type failure struct {
	since time.Time
	err   error // the last one
}

// begin notes that the broker took no message.
func (o *outage) begin(err error) {
	since := time.Now()
	if f := o.now(); f != nil {
		since = f.since
	}
	o.failure.Store(&failure{since, err})
}

// end notes that the broker took a message.
func (o *outage) end() { o.failure.Store(nil) }

// now returns nil while there is no outage.
func (o *outage) now() *failure {
	if o == nil {
		return nil
	}
	return o.failure.Load()
}
