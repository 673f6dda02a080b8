package asaas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// forEachFixture runs a test with the full and the sparse body of every event
// type.
func forEachFixture(t *testing.T, test func(t *testing.T, eventType asaas.EventType, body []byte)) {
	t.Helper()
	for _, eventType := range asaastest.Types() {
		for name, made := range map[string]func(asaas.EventType, ...asaastest.Change) []byte{
			"full": asaastest.Event, "sparse": asaastest.Sparse,
		} {
			t.Run(string(eventType)+"/"+name, func(t *testing.T) { test(t, eventType, made(eventType)) })
		}
	}
}

// handlers maps every event type to the On… method that handles it.
func handlers() map[asaas.EventType]string {
	out := make(map[asaas.EventType]string)
	for m := range reflect.TypeFor[*asaas.Dispatcher]().Methods() {
		if !strings.HasPrefix(m.Name, "On") || m.Name == "OnUnknown" {
			continue
		}
		d := asaas.NewDispatcher()
		handle(d, m.Name, func(any) {})
		if types := d.Types(); len(types) == 1 { // more are a family's
			out[types[0]] = m.Name
		}
	}
	return out
}

// handle gives an On… method a handler that hands its event to got.
func handle(d *asaas.Dispatcher, method string, got func(any)) {
	on := reflect.ValueOf(d).MethodByName(method)
	on.Call([]reflect.Value{reflect.MakeFunc(on.Type().In(0), func(args []reflect.Value) []reflect.Value {
		got(args[2].Interface())
		return []reflect.Value{reflect.Zero(reflect.TypeFor[error]())}
	})})
}

func TestThereAreFixturesOfEveryEventType(t *testing.T) {
	t.Parallel()
	want, got := handlers(), make(map[asaas.EventType]string)
	for _, eventType := range asaastest.Types() {
		got[eventType] = want[eventType]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event types (-handled +made):\n%s", diff)
	}
	if len(got) < 112 {
		t.Errorf("there are fixtures of %d event types, of 112 that Asaas has", len(got))
	}
}

func TestEachFixtureIsIdentified(t *testing.T) {
	t.Parallel()
	forEachFixture(t, func(t *testing.T, eventType asaas.EventType, body []byte) {
		all := leaves(t, body)
		e := asaas.Identify(body)
		got := idem.Event{Source: e.Source, ID: e.ID, Type: e.Type, Key: e.Key}
		want := idem.Event{Source: "asaas", ID: text(all["id"]), Type: string(eventType), Key: entityID(all)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if e.OccurredAt.IsZero() {
			t.Error("it has no time")
		}
	})
}

// entityID is the id of the object beside the envelope; "" if it has none.
func entityID(leaves map[string]string) string {
	for path, value := range leaves {
		if object, ok := strings.CutSuffix(path, ".id"); ok && !strings.Contains(object, ".") && object != "account" {
			return text(value)
		}
	}
	return ""
}

// text is a leaf that is a string.
func text(leaf string) (s string) {
	_, _ = fmt.Sscanf(leaf, "%q", &s) // null is no text
	return s
}

func TestEachFixtureReachesItsHandler(t *testing.T) {
	t.Parallel()
	methods := handlers()
	forEachFixture(t, func(t *testing.T, eventType asaas.EventType, body []byte) {
		var got []any
		d := asaas.NewDispatcher("a token")
		d.AllowFrom = asaas.OfficialAddresses()
		for _, method := range methods {
			handle(d, method, func(e any) { got = append(got, method, e) })
		}
		r := asaastest.Request("/webhooks/asaas", "a token", body)
		posted, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Open(withBody(r, posted))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Dispatch(t.Context(), nil, e); err != nil {
			t.Fatal(err)
		}
		want, err := asaas.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		if _, unknown := want.(*asaas.UnknownEvent); unknown {
			t.Error("it is unknown")
		}
		if diff := cmp.Diff([]any{methods[eventType], want}, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestNoFieldOfAFixtureIsLost(t *testing.T) {
	t.Parallel()
	forEachFixture(t, func(t *testing.T, _ asaas.EventType, body []byte) {
		e, err := asaas.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(leaves(t, body), leaves(t, written)); diff != "" {
			t.Errorf("-sent +written back:\n%s", diff)
		}
	})
}

func TestEveryDateOfAFixtureIsRead(t *testing.T) {
	t.Parallel()
	forEachFixture(t, func(t *testing.T, _ asaas.EventType, body []byte) {
		e, err := asaas.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		checkTimes(t, "event", reflect.ValueOf(e).Elem())
	})
}

func TestAProcessorTakesEveryFixtureOnce(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	handled := make(map[string]int)
	d := asaas.NewDispatcher("a token")
	for _, method := range handlers() {
		handle(d, method, func(e any) { handled[reflect.ValueOf(e).Elem().FieldByName("ID").String()]++ })
	}
	inbox := idem.NewInbox(pool, d)
	inbox.WorkFirst = true
	want := make(map[string]int)
	forEachFixture(t, func(t *testing.T, _ asaas.EventType, body []byte) {
		want[asaas.Identify(body).ID] = 1
		for range 2 {
			w := httptest.NewRecorder()
			inbox.ServeHTTP(w, asaastest.Request("/webhooks/asaas", "a token", body))
			if w.Code != http.StatusOK {
				t.Errorf("answered %d: %s", w.Code, w.Body)
			}
		}
	})
	if diff := cmp.Diff(want, handled); diff != "" {
		t.Errorf("how often each id was handled (-want +got):\n%s", diff)
	}
}

func TestAFullFixtureHasNoNews(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher()
	for _, method := range handlers() {
		handle(d, method, func(any) {})
	}
	dispatch := func(body []byte) {
		t.Helper()
		if err := d.Dispatch(t.Context(), nil, asaas.Identify(body)); err != nil {
			t.Fatal(err)
		}
	}
	for _, eventType := range asaastest.Types() {
		dispatch(asaastest.Event(eventType))
	}
	if news := d.Drift(); len(news) > 0 {
		t.Errorf("the spec's own bodies have what the package does not know: %v", news)
	}
	dispatch(asaastest.Event("PAYMENT_RECEIVED", asaastest.Add("payment.moon", "full")))
	if news := d.Drift(); len(news) != 1 {
		t.Errorf("news are not noticed here: %v", news)
	}
}

// checkTimes reads every Date and DateTime in v that is not empty.
func checkTimes(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	var err error
	switch at := v.Interface().(type) {
	case asaas.Date:
		if at != "" {
			_, err = at.Time()
		}
	case asaas.DateTime:
		if at != "" {
			_, err = at.Time()
		}
	case interface{ IsNull() bool }:
		if value := v.MethodByName("Get").Call(nil); value[1].Bool() {
			checkTimes(t, path, value[0])
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	switch v.Kind() {
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				checkTimes(t, path+"."+field.Name, value)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkTimes(t, fmt.Sprint(path, ".", i), v.Index(i))
		}
	}
}

// testdata returns a body of testdata. They are made up after the facts known
// about what Asaas delivers; nobody's data is in them.
func testdata(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// withBody is r with a body to be read once.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}
