package asaas

import (
	"context"
	"encoding/json"
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

// bodyOf is a body with as little in it as an event can have.
func bodyOf(eventType EventType) []byte {
	body := map[string]any{"id": "evt_1&1", "event": eventType}
	for f := range reflect.TypeOf(newEvent[eventType]()).Elem().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			body[name] = map[string]any{"object": "something"}
		}
	}
	text, _ := json.Marshal(body)
	return text
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

		if err := d.Dispatch(t.Context(), nil, Identify(bodyOf(eventType))); err != nil {
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

// The list is the enum of Asaas's OpenAPI document, not taken from the spec.
func TestEveryOfficialEventTypeIsKnown(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("testdata/official_event_types.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(maps.Keys(newEvent))
	var official []EventType
	for name := range strings.FieldsSeq(string(list)) {
		official = append(official, EventType(name))
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
