package idem

import "net/http"

// Source turns deliveries of one provider into events and events into work.
// asaas.Dispatcher and zeltapay.Dispatcher are sources. Its methods are called
// from many goroutines at once.
type Source interface {
	// Name is the provider's name, the same for ever: it is part of every
	// stored event's key.
	Name() string

	// Open verifies a delivery and names its event. It refuses what the headers
	// alone show is not genuine, and only then reads the body, with [ReadBody].
	//
	// A [*Refusal] means that the delivery is not genuine or not an event. Any
	// other error means that this could not be determined, and the provider is
	// asked to deliver again. A genuine body that does not decode is not an
	// error: its event has no Type, and an ID made by [BodyID].
	Open(r *http.Request) (Event, error)

	// Route finds the event's handler and decodes the event for it. A nil Work
	// without an error means that there is no handler. [ErrIgnored] means that
	// the application does not want to hear of this event. Any other error
	// means that the event does not decode into its type.
	//
	// An [Inbox] routes when it works. Before it stores an event it asks a
	// source that has a method Ignores(eventType string) bool, as [Routes] has,
	// and routes twice where there is none.
	Route(e Event) (Work, error)
}
