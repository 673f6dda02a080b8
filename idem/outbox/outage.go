package outbox

import (
	"sync/atomic"
	"time"
)

// outage holds the knowledge of an [Outbox]'s workers about their broker.
type outage struct {
	failure atomic.Pointer[failure] // nil while the broker takes messages
}

// failure says since when a broker has taken no messages.
type failure struct {
	since time.Time
	err   error // the last one
}

// begin notes that the broker took no message.
func (o *outage) begin(err error) {
	since := time.Now()
	if f := o.failure.Load(); f != nil {
		since = f.since
	}
	o.failure.Store(&failure{since, err})
}

// end notes that the broker took a message.
func (o *outage) end() { o.failure.Store(nil) }

// now returns a nil error while there is no outage.
func (o *outage) now() (since time.Time, err error) {
	if f := o.failure.Load(); f != nil {
		return f.since, f.err
	}
	return time.Time{}, nil
}
