package idem

import (
	"fmt"
	"net/http"
	"strings"
)

// Source turns deliveries of one provider into events and events into work.
// asaas.Dispatcher and zeltapay.Dispatcher are sources; embed [Routes] for
// Ignores and Route. Its methods are called from many goroutines at once.
type Source interface {
	// Name is the provider's name. It is part of every stored event's key, so
	// it never changes (unless operator.Operator.Rescope moves the events), and has no slash.
	Name() string

	// Open verifies a delivery and names its event. It refuses a request that the headers
	// alone show not to be genuine, and only then reads the body, with [ReadBody].
	//
	// A [*Refusal] means that the delivery is not genuine or not an event. Any
	// other error means that this could not be determined, and the provider is
	// asked to deliver again. A genuine body that does not decode is not an
	// error: its event has no Type, and an ID made by [BodyID].
	Open(r *http.Request) (Event, error)

	// Ignores reports whether events of a type are acknowledged without being
	// stored.
	Ignores(eventType string) bool

	// Route finds the event's handler and decodes the event for it. A nil Work
	// without an error means that there is no handler. An error means that the
	// event does not decode into its type: it is parked.
	Route(e Event) (Work, error)
}

// checkSource panics if source cannot be used: a mistake in the program.
func checkSource(source Source) {
	if name := source.Name(); name == "" || strings.Contains(name, "/") || !nameable(name) {
		panic(fmt.Sprintf("idem: a source's name is %q: it must not be empty or have a slash, its events would be another's", name))
	}
}
