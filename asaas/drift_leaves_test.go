package asaas_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// spot is a value in a body, and how to put another in its place.
type spot struct {
	path   string // as in a finding
	name   string // of the field
	old    any
	put    func(any)
	remove func() // nil for an element of a list
}

func spots(path, name string, v any, put func(any)) []spot {
	out := []spot{{path, name, v, put, nil}}
	switch v := v.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			below := spots(path+"."+field, field, v[field], func(to any) { v[field] = to })
			below[0].remove = func() { delete(v, field) }
			out = append(out, below...)
		}
	case []any:
		for i := range v {
			out = append(out, spots(path+"[]", name, v[i], func(to any) { v[i] = to })...)
		}
	}
	return out
}

// everyFamily returns a full body of an event type of each family.
func everyFamily(t *testing.T) map[asaas.EventType]map[string]any {
	t.Helper()
	out := make(map[asaas.EventType]map[string]any)
	seen := make(map[reflect.Type]bool)
	for _, eventType := range asaastest.Types() {
		text := asaastest.Event(eventType)
		e, err := asaas.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if kind := reflect.TypeOf(e); !seen[kind] {
			seen[kind] = true
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.UseNumber()
			var body map[string]any
			if err := decoder.Decode(&body); err != nil {
				t.Fatal(err)
			}
			out[eventType] = body
		}
	}
	return out
}

// Each value of each family in turn becomes each other kind of JSON.
func TestEveryChangeOfEveryValueIsAbsorbedOrToldWithItsPath(t *testing.T) {
	t.Parallel()
	methods := handlers()
	kinds := []any{nil, "", "12.5", "text", json.Number("7"), json.Number("0.125"), true, map[string]any{}, map[string]any{"new": "x"}, []any{}, []any{nil}}
	for eventType, body := range everyFamily(t) {
		t.Run(string(eventType), func(t *testing.T) {
			t.Parallel()
			for _, s := range spots("", "", body, nil)[1:] {
				if s.path == ".event" {
					continue
				}
				for _, kind := range kinds {
					s.put(kind)
					checkChange(t, methods[eventType], strings.TrimPrefix(s.path, "."), s.name, body)
				}
				s.put(s.old)
			}
		})
	}
}

func checkChange(t *testing.T, method, path, name string, body map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	handled := 0
	d := asaas.NewDispatcher()
	handle(d, method, func(any) { handled++ })
	e := asaas.Identify(text)
	err = d.Dispatch(t.Context(), nil, e)
	switch {
	case e.ID == "" || e.Type != body["event"]:
		t.Errorf("%s: the event is named %q, %q", path, e.ID, e.Type)
	case err == nil && handled != 1:
		t.Errorf("%s: it is neither handled nor an error", path)
	case err != nil && handled != 0:
		t.Errorf("%s: it is an error and handled: %v", path, err)
	case err != nil && !strings.Contains(err.Error(), name):
		t.Errorf("%s: the error does not tell the path: %v", path, err)
	case err != nil && !told(d, path):
		t.Errorf("%s: %v, and the drift has only %v", path, err, d.Drift())
	}
}

// told tells whether there is a finding at a path, or in what is now below it.
func told(d *asaas.Dispatcher, path string) bool {
	for _, f := range d.Drift() {
		if strings.HasPrefix(f.Path, path) {
			return true
		}
	}
	return false
}
