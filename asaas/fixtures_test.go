package asaas_test

import (
	"bytes"
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

func TestAnInboxTakesEveryFixtureOnce(t *testing.T) {
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
