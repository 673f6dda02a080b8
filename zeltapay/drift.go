package zeltapay

import (
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Drift returns what this dispatcher was sent and this package does not know,
// since the program started: where, what kind of difference, how often, and
// never a value. Metadata is yours, and not looked at. Package drift tells what
// else is. To be told of each finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// look has the watch look at an event, and returns it decoded where it decodes:
// an event that is replayed comes without that.
func (d *Dispatcher) look(e idem.Event) idem.Event {
	if e.Decoded == nil {
		if decoded, err := Parse(e.Payload); err == nil {
			e.Decoded = decoded
		}
	}
	d.Watch.Look(e.Type, structOf(e), e.Decoded == nil, e.Payload)
	return e
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
