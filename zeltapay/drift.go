package zeltapay

import (
	"sync"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Drift returns what this dispatcher was sent and this package does not know,
// since the program started: where, what kind of difference, how often, and
// never a value. Metadata is yours, and not looked at. Package drift tells what
// else is. To be told of each finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// look has the watch look at an event that was routed, and failed or not.
func (d *Dispatcher) look(e idem.Event, failed bool) {
	d.Watch.Look(e.Type, structs()[EventType(e.Type)], failed, e.Payload)
}

// structs has an empty event of each type that is known.
var structs = sync.OnceValue(func() map[EventType]Event {
	all := make(map[EventType]Event)
	for t, create := range newEvent {
		all[t] = create()
	}
	return all
})
