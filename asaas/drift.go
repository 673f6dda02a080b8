package asaas

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Drift returns what this dispatcher was sent and this package does not know,
// since the program started: where, what kind of difference, how often, and
// never a value. Package drift tells what is looked at. To be told of each
// finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// Route implements [idem.Source]. An event whose body has null, or nothing, in
// place of what it is about is an error: its struct would hold zeros that
// Asaas did not send.
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) {
	e = d.look(e)
	work, err := d.Routes.Route(e)
	if work == nil || err != nil {
		return work, err
	}
	if err := d.complete(e); err != nil {
		return nil, err
	}
	return work, nil
}

// Dispatch is [idem.Dispatch] with the handlers of d.
func (d *Dispatcher) Dispatch(ctx context.Context, tx pgx.Tx, e idem.Event) error {
	return idem.Dispatch(ctx, tx, d, e)
}

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

// complete checks an event's struct. A handler that takes a struct of the
// application's own, perhaps because Asaas changed the event, does not care.
func (d *Dispatcher) complete(e idem.Event) error {
	err := drift.Check(e.Decoded, e.Payload)
	if err == nil {
		return nil
	}
	// Without a payload, only a handler of what is decoded already can be found.
	if _, notOurs := d.Routes.Route(idem.Event{Type: e.Type, Decoded: e.Decoded}); notOurs != nil {
		return nil
	}
	return fmt.Errorf("asaas: a %s is not complete: %w", e.Type, err)
}
