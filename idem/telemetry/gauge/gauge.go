// Package gauge describes the metrics of package idem, and reads them. Package idemotel
// renders them for OpenTelemetry, and idemprom for Prometheus. For another system, make its
// instruments of [Metrics], and record:
//
//	gauge.Begin(&inbox.Endpoint, record)
//	inbox.Observe = func(_ context.Context, o idem.Observation) { gauge.Observe(o, record) }
//
//	var states gauge.States
//	states.WatchBacklog(inbox.SourceName(), inbox.Stats)
//	err := states.Read(ctx, record) // at each scrape
//
// [Queue] is the state of a provider's delivery queue, which such gauges and package
// console show.
package gauge

import (
	"context"
	"time"
)

// Queue is the state of a provider's delivery queue, as the provider reports it: of
// the events of one webhook that it has not delivered yet.
type Queue struct {
	ID   string // the provider's id of the queue, for [Queues.Release] and [Queues.Enable]
	Name string // the name that the queue has at the provider
	URL  string // where the provider delivers to, without parts that may be secret

	Enabled     bool // if false, the provider puts no events into the queue: events of that time never come
	Interrupted bool // the provider has stopped the queue: nothing is delivered until the queue is released
	Penalized   int  // failed deliveries that count against the queue; above 0, the provider pauses between attempts

	// DeletesIn is the time until the provider deletes the oldest waiting event, as
	// far as is known; 0 if it is not known. It is never less than a second, even
	// after that time.
	DeletesIn time.Duration

	// Problems are reasons for which events do not enter the queue, if the application had that
	// checked: one line each, for people, without secrets. An example is a handled event type
	// without a subscription.
	Problems []string
}

// Queues reads, releases and enables the delivery queues of a provider that slows them down
// or stops them when deliveries fail. webhook.NewQueues returns one.
type Queues interface {
	// Queues asks the provider for all of its queues.
	Queues(ctx context.Context) ([]Queue, error)

	// Release probes the receiver and, only if that succeeds, resumes a queue that
	// is stopped or removes its penalty. It returns its changes in words for people,
	// also with an error. It may take minutes.
	Release(ctx context.Context, id string) (string, error)

	// Enable has the provider put events into a queue again that is not Enabled. It returns its change as
	// Release does. Events of the time before never come.
	Enable(ctx context.Context, id string) (string, error)
}
