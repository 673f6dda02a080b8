package asaas

import (
	"context"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// onMethods are the names of the generated On… methods.
func onMethods() []string {
	var names []string
	for m := range reflect.TypeFor[*Dispatcher]().Methods() {
		if strings.HasPrefix(m.Name, "On") && m.Name != "OnUnknown" {
			names = append(names, m.Name)
		}
	}
	return names
}

// register gives an On… method a handler that hands its event to got.
func register(d *Dispatcher, method string, got func(any)) {
	on := reflect.ValueOf(d).MethodByName(method)
	handler := reflect.MakeFunc(on.Type().In(0), func(args []reflect.Value) []reflect.Value {
		got(args[2].Interface())
		return []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
	})
	on.Call([]reflect.Value{handler})
}

func TestEachEventTypeReachesItsHandlerAndNoOther(t *testing.T) {
	t.Parallel()
	reachedBy := make(map[EventType]string)
	for _, method := range onMethods() {
		d := NewDispatcher()
		var got []any
		register(d, method, func(e any) { got = append(got, e) })
		types := d.Types()
		if len(types) != 1 {
			t.Fatalf("%s handles %v, want one type", method, types)
		}
		eventType := types[0]
		if other := reachedBy[eventType]; other != "" {
			t.Errorf("%s and %s both handle %s", other, method, eventType)
		}
		reachedBy[eventType] = method

		if err := d.Dispatch(t.Context(), nil, Identify(syntheticEvent(eventType))); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if len(got) != 1 || got[0].(Event).envelope().Event != eventType || reflect.TypeOf(got[0]) != reflect.TypeOf(newEvent[eventType]()) {
			t.Errorf("%s got %v for a %s", method, got, eventType)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(newEvent)), slices.Sorted(maps.Keys(reachedBy))); diff != "" {
		t.Errorf("event types (-known +handled):\n%s", diff)
	}
}

func TestAllHandlersRegisterTogether(t *testing.T) {
	t.Parallel()
	d := NewDispatcher()
	d.OnUnknown(func(context.Context, pgx.Tx, *UnknownEvent) error { return nil })
	for _, method := range onMethods() {
		register(d, method, func(any) {})
	}
	if got := len(d.Types()); got != len(newEvent) {
		t.Errorf("%d types are handled, of %d", got, len(newEvent))
	}
}

// The list is Asaas's, not taken from the spec; it states its date.
func TestEveryOfficialEventTypeIsKnown(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("testdata/official_event_types.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(maps.Keys(newEvent))
	var official []EventType
	for line := range strings.Lines(string(list)) {
		if !strings.HasPrefix(line, "#") {
			official = append(official, EventType(strings.TrimSpace(line)))
		}
	}
	if diff := cmp.Diff(official, known); diff != "" {
		t.Errorf("event types (-official +known):\n%s", diff)
	}
}

func TestKnownIsKnown(t *testing.T) {
	t.Parallel()
	for eventType, create := range newEvent {
		if !eventType.Known() || isUnknown(string(eventType)) || create() == create() {
			t.Errorf("%s is not known, or shares its events", eventType)
		}
	}
	if EventType("NEWS").Known() || !isUnknown("NEWS") || isUnknown("") {
		t.Error("NEWS is known, or an event without a name is unknown")
	}
}
