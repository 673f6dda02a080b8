package asaas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
	work, err := d.Routes.Route(e) // decodes it, if there is a handler
	k := kinds()[EventType(e.Type)]
	d.Watch.Look(e.Type, k.empty, err != nil && !d.Ignores(e.Type), e.Payload)
	if work == nil || err != nil {
		return work, err
	}
	if err := d.complete(e, k); err != nil {
		return nil, err
	}
	return work, nil
}

// complete checks that the body says what the event's struct takes for granted.
// A handler that takes a struct of the application's own, perhaps because Asaas
// changed the event, does not care.
func (d *Dispatcher) complete(e idem.Event, k kind) error {
	decoded := k.empty
	if e.Key != "" {
		decoded = k.named // the body has the object: its id was found there
	}
	err := drift.Check(decoded, e.Payload)
	if err == nil || !d.takesOurs(e.Type, k) {
		return nil
	}
	return fmt.Errorf("asaas: a %s is not complete: %w", e.Type, err)
}

// takesOurs tells whether the handler's struct has this package's type for what
// the event is about: such a type refuses a number.
func (d *Dispatcher) takesOurs(eventType string, k kind) bool {
	for _, name := range k.fields {
		_, err := d.Routes.Route(idem.Event{Type: eventType, Payload: fmt.Appendf(nil, `{%q:0}`, name)})
		var refused *json.UnmarshalTypeError
		if errors.As(err, &refused) && refused.Type.PkgPath() == reflect.TypeFor[kind]().PkgPath() {
			return true
		}
	}
	return false
}

// Dispatch is [idem.Dispatch] with the handlers of d.
func (d *Dispatcher) Dispatch(ctx context.Context, tx pgx.Tx, e idem.Event) error {
	return idem.Dispatch(ctx, tx, d, e)
}
