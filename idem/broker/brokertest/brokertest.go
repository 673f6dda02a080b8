package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
)

// Broker is a module under test.
type Broker struct {
	// Open makes a queue that is empty and that no other test has. It closes all that it
	// opened with t.Cleanup. Tests run in parallel.
	Open func(t testing.TB) Queue

	// OpenOwn is Open on a broker of the test's own, for tests that restart it or
	// have it hang. Default: Open.
	OpenOwn func(t testing.TB) Queue
}

// Queue is a queue, a topic or a stream of a broker. A field that it cannot offer is zero.
type Queue struct {
	Publisher broker.Publisher // to the queue; its errors name the message by its Type and ID

	// Consume gives the queue's messages to handle until ctx ends, as the module
	// has its users do it. It is called again after it has returned, and by several
	// goroutines at once: they share the messages.
	Consume func(ctx context.Context, handle broker.Handle) error

	// Address identifies the queue in another process, which opens it with the
	// function that [Main] got. Tests that kill processes need it.
	Address string

	// AckTimeout is the time for which a consumer may hold a message, unless it asks for more
	// time, until the broker delivers it again. Make it a few seconds.
	AckTimeout time.Duration

	// Ordered says that the broker delivers the messages of a Key in order, and no
	// two at the same time, however many processes consume: that suffices for a
	// Processor, and for an inbox that several processes consume into.
	Ordered bool

	// Oversize is a size in bytes that no message may have: its error has
	// [broker.ErrTooLarge].
	Oversize int

	// Nowhere publishes to a place that does not exist, a queue, a subject or a topic: its error
	// has [broker.ErrNoQueue].
	Nowhere broker.Publisher

	// Restart stops the broker, starts it again on the same data, and returns.
	Restart func(t testing.TB)

	// Hang has the broker answer nothing, without closing connections, until resume
	// is called. It may be called more than once.
	Hang func(t testing.TB) (resume func())
}
