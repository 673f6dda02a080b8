package asaas

import (
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Drift returns what this dispatcher was sent and this package does not know,
// since the program started: where, what kind of difference, how often, and
// never a value. Package drift tells what is looked at. To be told of each
// finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// Route implements [idem.Source]. An event whose body has null, or nothing, in
// place of its entity or of the entity's id, amount or status is an error: its
// struct would hold zeros that Asaas did not send. Whatever else is null or
// missing is handled, and reported by [Dispatcher.Drift].
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) {
	work, err := d.Routes.Route(e)
	d.Watch.Look(e.Type, kinds()[EventType(e.Type)].empty, err, e.Payload)
	return work, err
}
