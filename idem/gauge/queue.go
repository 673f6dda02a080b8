package gauge

import (
	"context"
	"time"
)

// Queue is the state of a provider's delivery queue, as the provider reports it: of
// the events of one webhook that it has not delivered yet.
type Queue struct {
	ID   string // the provider's id of it, for [Queues.Release]
	Name string // for people, as somebody gave it at the provider
	URL  string // where the provider delivers to, without parts that may be secret

	Enabled     bool // if false, the provider puts no events into it: those of that time never come
	Interrupted bool // the provider has stopped it: nothing is delivered until it is released
	Penalized   int  // failed deliveries that count against it; above 0, the provider pauses between attempts

	// DeletesIn is the time until the provider deletes the oldest waiting event, as
	// far as is known; 0 if it is not known. It is never less than a second, even
	// after that time.
	DeletesIn time.Duration

	// Problems are the reasons that keep events out of it, as far as the application had that
	// compared: a line each, for people, without secrets. A handled type that is not
	// subscribed to is one.
	Problems []string
}

// Queues reads and releases the delivery queues of a provider that slows them down
// or stops them when deliveries fail. asaas.NewQueues returns one.
type Queues interface {
	// Queues asks the provider for all of its queues.
	Queues(ctx context.Context) ([]Queue, error)

	// Release probes the receiver and, only if that succeeds, resumes a queue that
	// is stopped or removes its penalty. It returns its changes in words for people,
	// also with an error. It may take minutes.
	Release(ctx context.Context, id string) (string, error)
}
