package zeltapay

import (
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Drift returns what this dispatcher was sent and this package does not know,
// since the program started: where, what kind of difference, how often, and
// never a value. Metadata is yours, and not looked at. Package drift tells what
// else is. To be told of each finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// look has the watch look at an event, and returns it decoded where it decodes:
// an event that is replayed comes without that. incomplete tells what an event
// that decodes lacks.
func (d *Dispatcher) look(e idem.Event) (_ idem.Event, incomplete error) {
	var failure error
	if e.Decoded == nil {
		var decoded Event
		if decoded, failure = Parse(e.Payload); failure == nil {
			e.Decoded = decoded
		}
	}
	if decoded, ok := e.Decoded.(Event); ok {
		if err := decoded.check(e.Payload); err != nil {
			incomplete = fmt.Errorf("zeltapay: a %s is not complete: %w", e.Type, err)
			failure = incomplete
		}
	}
	d.Watch.Look(e.Type, structOf(e), failure, e.Payload)
	return e, incomplete
}

// structOf is a pointer to the struct that an event decodes into, or would; nil
// for an event type that is not known.
func structOf(e idem.Event) any {
	if decoded, ok := e.Decoded.(Event); ok && !isUnknown(e.Type) {
		return decoded
	}
	if create := newEvent[EventType(e.Type)]; create != nil {
		return create()
	}
	return nil
}

// isOwn tells whether the event's handler takes a struct of the application's
// own, perhaps because Zelta Pay changed the event: what it needs is not known
// here.
func (d *Dispatcher) isOwn(e idem.Event) bool {
	// Without a payload, only a handler of what is decoded already can be found.
	_, err := d.Routes.Route(idem.Event{Type: e.Type, Decoded: e.Decoded})
	return err != nil
}
