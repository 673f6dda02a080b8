package asaas

import (
	"reflect"

	"github.com/paghooks/paghooks/idem/optional"
)

var oneReal = Cents(100)

// fillEssentials gives the event's entity an amount and a status, where it
// has such a field and nothing in it: an event without them is not handled.
func fillEssentials(e Event) {
	if b, ok := e.(*BalanceEvent); ok {
		b.Balance = optional.Of(BalanceBlock{Value: optional.Of(oneReal)})
	}
	for _, object := range reflect.ValueOf(e).Elem().Fields() {
		if object.Kind() != reflect.Struct {
			continue
		}
		if value := object.FieldByName("Value"); value.IsValid() && value.Type() == reflect.TypeFor[Money]() && value.IsZero() {
			value.Set(reflect.ValueOf(oneReal))
		}
		if status := object.FieldByName("Status"); status.IsValid() && status.Kind() == reflect.String && status.IsZero() {
			begin(status)
		}
	}
}

// begin sets a status to the one that its kind of entity begins with.
func begin(status reflect.Value) {
	for _, value := range []string{"PENDING", "SCHEDULED", "ACTIVE", "AWAITING_REQUEST", "ELIGIBLE"} {
		status.SetString(value)
		if status.Interface().(interface{ Known() bool }).Known() {
			return
		}
	}
}
