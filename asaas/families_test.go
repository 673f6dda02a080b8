package asaas

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

// onFamilies are the names of the methods for all types of a family.
var onFamilies = []string{
	"OnAccessToken", "OnAccountStatus", "OnAnticipation", "OnBalance", "OnBill", "OnCheckout", "OnInternalTransfer", "OnInvoice",
	"OnMobilePhoneRecharge", "OnPayment", "OnPixAutomaticAuthorization", "OnPixAutomaticInstruction", "OnSubscription", "OnTransfer",
}

func TestAFamilysHandlerGetsEveryTypeOfItsStruct(t *testing.T) {
	t.Parallel()
	d := NewDispatcher()
	want := make(map[reflect.Type][]EventType)
	for eventType, create := range newEvent {
		if of := reflect.TypeOf(create()); of != reflect.TypeFor[*PixAutomaticEligibilityEvent]() { // a single type
			want[of] = append(want[of], eventType)
		}
	}
	got := make(map[reflect.Type][]EventType)
	for _, method := range onFamilies {
		register(d, method, func(e any) { got[reflect.TypeOf(e)] = append(got[reflect.TypeOf(e)], e.(Event).envelope().Event) })
	}
	for _, eventType := range d.Types() {
		if err := d.Dispatch(t.Context(), nil, Identify(bodyOf(t, eventType))); err != nil {
			t.Errorf("%s: %v", eventType, err)
		}
	}
	sorted := cmpopts.SortSlices(func(a, b EventType) bool { return a < b })
	if diff := cmp.Diff(want, got, sorted, cmp.Comparer(func(a, b reflect.Type) bool { return a == b })); diff != "" {
		t.Error("types by struct (-of the spec +handled):\n" + diff)
	}
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

// onMethods are the names of the generated On… methods of single event types.
func onMethods() []string {
	var names []string
	for m := range reflect.TypeFor[*Dispatcher]().Methods() {
		if strings.HasPrefix(m.Name, "On") && m.Name != "OnUnknown" && !slices.Contains(onFamilies, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
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

// families are the bodies in testdata, by the event struct that they are for.
func families(t *testing.T) map[reflect.Type][][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[reflect.Type][][]byte)
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[reflect.TypeOf(e)] = append(out[reflect.TypeOf(e)], body)
	}
	return out
}

// bodyOf returns a body of an event type, with the object of another of its family.
func bodyOf(t *testing.T, eventType EventType) []byte {
	t.Helper()
	return as(eventType, families(t)[reflect.TypeOf(newEvent[eventType]())][0])
}

var eventName = regexp.MustCompile(`"event":"[A-Z_]+"`)

func as(t EventType, body []byte) []byte {
	return eventName.ReplaceAll(body, []byte(`"event":"`+string(t)+`"`))
}

func TestEveryOnMethodDecodesItsFamily(t *testing.T) {
	t.Parallel()
	bodies := families(t)
	for _, method := range onMethods() {
		d := NewDispatcher()
		var got any
		register(d, method, func(e any) { got = e })
		eventType := d.Types()[0]
		family := bodies[reflect.TypeOf(newEvent[eventType]())]
		if len(family) == 0 {
			t.Errorf("testdata has no body for %s", method)
		}
		for _, body := range family {
			body = as(eventType, body)
			want, err := Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Dispatch(t.Context(), nil, Identify(body)); err != nil {
				t.Errorf("%s: %v", method, err)
			}
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", method, diff)
			}
		}
	}
}

func TestTheKeyIsTheIDOfWhatTheEventIsAbout(t *testing.T) {
	t.Parallel()
	for kind, family := range families(t) {
		for _, body := range family {
			var sent map[string]json.RawMessage
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}
			var want struct{ ID string }
			for name, about := range sent {
				if !slices.Contains([]string{"id", "event", "dateCreated", "account"}, name) {
					_ = json.Unmarshal(about, &want) // a block and the like have no id
				}
			}
			if got := Identify(body).Key; got != want.ID {
				t.Errorf("the key of a %s is %q, want %q", kind, got, want.ID)
			}
		}
	}
}

// neverSeen are the fields that have not been seen where they are: nobody has
// published a custody other than null, splits by the name that requests have for
// them, a paymentId under the older name of a block, or the account of every event
// of Pix Automático, or the mode that the request of a subscription has.
var neverSeen = regexp.MustCompile(`^(payment\.custody\..*|payment\.splits(\..*)?|balance\.paymentId|account(\..*)?|subscription\.pixAutomaticAuthorizationMode)$`)

// Without it, a field of a wrong type or name would go unnoticed by the tests
// that read testdata.
func TestTestdataHasEveryField(t *testing.T) {
	t.Parallel()
	for kind, family := range families(t) {
		if kind == reflect.TypeFor[*UnknownEvent]() {
			continue
		}
		missing := make(map[string]bool)
		fieldPaths("", kind.Elem(), missing)
		for _, body := range family {
			var sent any
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}
			removeSent("", sent, missing)
		}
		maps.DeleteFunc(missing, func(path string, _ bool) bool { return neverSeen.MatchString(path) })
		if len(missing) > 0 {
			t.Errorf("no body of a %s has %v", kind, slices.Sorted(maps.Keys(missing)))
		}
	}
}

// fieldPaths adds the JSON paths of all fields of a type.
func fieldPaths(path string, kind reflect.Type, out map[string]bool) {
	if get, ok := kind.MethodByName("Get"); ok {
		kind = get.Type.Out(0) // of a value.Optional
	}
	if kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if path != "" {
		out[path] = true
	}
	if kind.Kind() != reflect.Struct || kind == reflect.TypeFor[Decimal]() {
		return
	}
	for _, field := range reflect.VisibleFields(kind) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			fieldPaths(strings.TrimPrefix(path+"."+name, "."), field.Type, out)
		}
	}
}

func removeSent(path string, v any, from map[string]bool) {
	delete(from, path)
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			removeSent(strings.TrimPrefix(path+"."+name, "."), field, from)
		}
	case []any:
		for _, element := range v {
			removeSent(path, element, from)
		}
	}
}

// The list in the documentation has one name, its sample and its English page the
// other.
func TestARechargeComesUnderEitherName(t *testing.T) {
	t.Parallel()
	body := families(t)[reflect.TypeFor[*MobilePhoneRechargeEvent]()][0]
	for method, name := range map[string]EventType{
		"OnMobilePhoneRechargePending": "PHONE_RECHARGE_PENDING", "OnMobilePhoneRechargeConfirmed": "PHONE_RECHARGE_CONFIRMED",
		"OnMobilePhoneRechargeCancelled": "PHONE_RECHARGE_CANCELLED", "OnMobilePhoneRechargeRefunded": "PHONE_RECHARGE_REFUNDED",
	} {
		d := NewDispatcher()
		var got []any
		register(d, method, func(e any) { got = append(got, e) })
		for _, sentName := range []EventType{"MOBILE_" + name, name} {
			sent := as(sentName, body)
			e := Identify(sent)
			if e.Type != "MOBILE_"+string(name) || string(e.Payload) != string(sent) {
				t.Errorf("%s: the type is %s, the payload %s", sentName, e.Type, e.Payload)
			}
			if err := d.Dispatch(t.Context(), nil, e); err != nil {
				t.Errorf("%s: %v", sentName, err)
			}
		}
		if len(got) != 2 || got[1].(Event).envelope().Event != name {
			t.Errorf("got %v, want both, the second with the name that was sent", got)
		}
		if types := d.Types(); len(types) != 1 {
			t.Errorf("the types to subscribe to are %v, want the official one", types)
		}
	}
}

// Whoever copies a name from the documentation's sample means the same event.
func TestEitherNameOfARechargeMayBeHandledAndIgnored(t *testing.T) {
	t.Parallel()
	body := families(t)[reflect.TypeFor[*MobilePhoneRechargeEvent]()][0]
	for alias, eventType := range aliases {
		handles, ignores := NewDispatcher(), NewDispatcher()
		ran := 0
		idem.Handle(&handles.Routes, string(alias), func(context.Context, pgx.Tx, *MobilePhoneRechargeEvent) error { ran++; return nil })
		ignores.Ignore(alias)
		for _, again := range []EventType{alias, eventType} {
			wantPanic(t, "has a handler, or is ignored already", func() { handles.Ignore(again) })
			wantPanic(t, "register each event type once", func() {
				idem.Handle(&ignores.Routes, string(again), func(context.Context, pgx.Tx, *MobilePhoneRechargeEvent) error { return nil })
			})
		}
		for _, sent := range []EventType{alias, eventType} {
			e := Identify(as(sent, body))
			if err := handles.Dispatch(t.Context(), nil, e); err != nil {
				t.Errorf("a handler of %s, %s was sent: %v", alias, sent, err)
			}
			if !ignores.Ignores(e.Type) {
				t.Errorf("%s is ignored, and %s is not", alias, sent)
			}
		}
		if ran != 2 || !handles.Handles(string(alias)) || !handles.Handles(string(eventType)) || !ignores.Ignores(string(alias)) {
			t.Errorf("a handler of %s ran %d times, want 2", alias, ran)
		}
	}
}

func wantPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), want) {
			t.Errorf("panic %v, want %s", p, want)
		}
	}()
	f()
}

// KeyOf is the key of an event that is decoded, as its JSON has it when it is encoded
// again.
func KeyOf(e Event) string {
	var text string
	own := slices.IndexFunc(definition.Naming.Events, func(n provider.Names) bool {
		return slices.Contains(n.Types, string(canonical(e.envelope().Event)))
	})
	if own < 0 {
		return "" // it is not known
	}
	for _, path := range definition.Naming.Events[own].Key {
		at, _ := json.Marshal(e)
		for name := range strings.SplitSeq(strings.TrimSuffix(path, "#"), ".") {
			var object map[string]json.RawMessage
			_ = json.Unmarshal(at, &object)
			at = object[name]
		}
		_ = json.Unmarshal(at, &text)
	}
	return text
}
