package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/provider"
)

func (s suite) named(t *testing.T) {
	s.bodies(t, func(t *testing.T, eventType string, body []byte) {
		e := s.Identify(body)
		if e.Source != s.New().Name() || e.Type != eventType || e.ID == "" || !bytes.Equal(e.Payload, body) {
			t.Errorf("it is %s of %s, %q, with the body %s", e.Type, e.Source, e.ID, e.Payload)
		}
		if s.Named != nil {
			if id, key := s.Named(object(t, body)); e.ID != id || e.Key != key {
				t.Errorf("it is %q about %q, want %q about %q", e.ID, e.Key, id, key)
			}
		}
		opened, err := s.New(s.Secrets[0]).Open(s.request(s.Secrets[0], body))
		if err != nil || !reflect.DeepEqual(opened, e) && !s.namesInHeaders() {
			t.Errorf("it is opened as %+v, %v, and identified as %+v", opened, err, e)
		}
	})
	unreadable := s.Identify([]byte("not JSON"))
	if unreadable.Type != "" || unreadable.ID == "" {
		t.Errorf("what is no JSON is %+v", unreadable)
	}
}

// namesInHeaders reports whether a delivery's headers may have names that its body has not.
func (s suite) namesInHeaders() bool {
	scheme, ok := s.scheme().(provider.HMAC)
	return ok && (scheme.IDHeader != "" || scheme.TypeHeader != "")
}

func (s suite) handled(t *testing.T) {
	if want := slices.Sorted(maps.Keys(s.on)); !slices.Equal(want, slices.Sorted(slices.Values(s.Types))) {
		t.Errorf("there are handlers of %v, and bodies of %v", want, s.Types)
	}
	d, all := s.dispatcher(s.Secrets[0])
	s.bodies(t, func(t *testing.T, eventType string, body []byte) {
		*all = nil
		e, err := d.Open(s.request(s.Secrets[0], body))
		if err == nil {
			err = d.Dispatch(t.Context(), nil, e)
		}
		want, fault := s.Parse(body)
		if fault != nil || err != nil || strings.HasSuffix(fmt.Sprintf("%T", want), ".UnknownEvent") {
			t.Errorf("it is parsed as a %T, %v; Dispatch = %v", want, fault, err)
		}
		if !reflect.DeepEqual(*all, []got{{s.on[eventType], want}}) {
			t.Errorf("handlers got %v, want the event of the type once, by %s", *all, s.on[eventType])
		}
	})
}

func (s suite) kept(t *testing.T) {
	s.bodies(t, func(t *testing.T, _ string, body []byte) {
		e, err := s.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if sent, back := leaves(object(t, body)), leaves(object(t, written)); !maps.Equal(sent, back) {
			t.Errorf("sent: %v\nwritten back: %v", sent, back)
		}
	})
}

// news checks that the bodies of the spec have no drift, and that a new field, and a new type, are drift.
func (s suite) news(t *testing.T) {
	d, all := s.dispatcher()
	settings(d).Watch.Every = 1
	dispatch := func(body []byte) {
		t.Helper()
		if err := d.Dispatch(t.Context(), nil, s.Identify(body)); err != nil {
			t.Error(err)
		}
	}
	for _, eventType := range s.Types {
		dispatch(s.Event(eventType))
	}
	if found := d.Drift(); len(found) > 0 {
		t.Errorf("the spec's own bodies have %+v", found)
	}
	dispatch(s.Event(s.Types[0], Add("paghooks9", "new")))
	if len(*all) != len(s.Types)+1 {
		t.Errorf("%d events were handled", len(*all))
	}
	body := bytes.Replace(s.Event(s.Types[0]), []byte(`"`+s.Types[0]+`"`), []byte(`"`+s.Types[0]+`9"`), 1)
	e := s.Identify(body)
	if work, err := d.Route(e); work != nil || err != nil || e.Type != s.Types[0]+"9" {
		t.Errorf("a new type is %q: it has a handler, or is an error: %v", e.Type, err)
	}
	want := []string{"unknown_field paghooks9", "unknown_event "}
	if found := findings(d); !slices.Equal(found, want) && !slices.Equal(found, []string{want[1], want[0]}) {
		t.Errorf("found %q, want %q", found, want)
	}
	if unknown, err := s.Parse(body); err != nil || !strings.HasSuffix(fmt.Sprintf("%T", unknown), ".UnknownEvent") {
		t.Errorf("a new type is parsed as a %T, %v", unknown, err)
	}
	if _, err := s.Parse([]byte("not JSON")); err == nil {
		t.Error("what is no JSON is parsed")
	}
}

func findings(d Dispatcher) (out []string) {
	for _, f := range d.Drift() {
		out = append(out, string(f.Kind)+" "+f.Path)
	}
	return out
}

func (s suite) changed(t *testing.T) {
	for _, c := range s.Changes {
		body := strings.Replace(string(s.Original), c.Old, c.New, 1)
		if body == string(s.Original) && c.Old != "" {
			t.Fatalf("%s: there is no %s", c.Reason, c.Old)
		}
		d, all := s.dispatcher()
		told := 0
		settings(d).Watch.Observe = func(drift.Finding) { told++ }
		state, text := "done", ""
		for range 2 { // the second is seen, and not told again
			e := s.Identify([]byte(body))
			work, err := d.Route(e)
			switch {
			case err != nil:
				state, text = "parked", err.Error()
			case work == nil:
				state = "unhandled"
			default:
				err = work(t.Context(), nil)
			}
			if (len(*all) > 0) != (state == "done") || err != nil && state != "parked" {
				t.Errorf("%s: it is %s, and %d were handled: %v", c.Reason, state, len(*all), err)
			}
		}
		if state != c.State || !strings.Contains(text, c.Error) {
			t.Errorf("%s: it is %s, %s; want %s, %s", c.Reason, state, text, c.State, c.Error)
		}
		found := findings(d)
		if strings.Join(found, ", ") != c.Found || told != len(found) {
			t.Errorf("%s: %d told, found %q, want %q", c.Reason, told, found, c.Found)
		}
		for _, f := range d.Drift() {
			if f.Count != 2 || f.First.IsZero() || f.Last.Before(f.First) {
				t.Errorf("%s: %+v was seen twice", c.Reason, f)
			}
		}
	}
}

// essential has each field of each body in turn be null, and be absent.
func (s suite) essential(t *testing.T) {
	if s.Essential == nil {
		t.Skip("it is not said")
	}
	structs := make(map[reflect.Type]bool)
	for _, eventType := range s.Types {
		event, _ := s.Parse(s.Event(eventType))
		_, has := s.Essential[eventType]
		structs[reflect.TypeOf(event)] = structs[reflect.TypeOf(event)] || has
	}
	for of, has := range structs {
		if !has {
			t.Errorf("Essential has no type of a %s", of)
		}
	}
	for eventType, parks := range s.Essential {
		body := object(t, s.Event(eventType))
		for _, spot := range s.spots(eventType, body) {
			if spot.remove == nil {
				continue // an element of a list
			}
			spot.remove()
			always := s.written(t, body, spot.path)
			for kind, change := range map[drift.Kind]func(){drift.UnexpectedNull: func() { spot.put(nil) }, drift.MissingRequired: spot.remove} {
				change()
				d, all := s.dispatcher()
				err := d.Dispatch(t.Context(), nil, s.Identify(encoded(t, body)))
				lacks := slices.Contains(parks, spot.path)
				if lacks != (err != nil) || lacks != (len(*all) == 0) || lacks && !strings.Contains(fmt.Sprint(err), spot.path) {
					t.Errorf("%s, %s: %s: handled %d times, %v; want that it parks: %t", eventType, spot.path, kind, len(*all), err, lacks)
				}
				found := slices.Contains(findings(d), string(kind)+" "+spot.path)
				if lacks {
					found = len(findings(d)) > 0 // of several paths one is enough, and another one is told
				}
				if found != (lacks || always) {
					t.Errorf("%s, %s: %s: the drift is %v; want it there: %t", eventType, spot.path, kind, findings(d), !found)
				}
				spot.put(spot.old)
			}
		}
		for _, spot := range s.spots(eventType, body) { // 0 is not missing
			if _, number := spot.old.(json.Number); number && slices.Contains(parks, spot.path) {
				spot.put(json.Number("0"))
				d, all := s.dispatcher()
				if err := d.Dispatch(t.Context(), nil, s.Identify(encoded(t, body))); err != nil || len(*all) != 1 || len(d.Drift()) > 0 {
					t.Errorf("%s, %s: 0 is handled %d times, %v, with the drift %v", eventType, spot.path, len(*all), err, findings(d))
				}
				spot.put(spot.old)
			}
		}
	}
}

// written reports whether a path that a body lacks is written, as a field that an event always has is.
func (s suite) written(t *testing.T, body map[string]any, path string) bool {
	t.Helper()
	e, err := s.Parse(encoded(t, body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(spots("", object(t, text), nil), func(at spot) bool { return at.path == path })
}

// absorbed has each value of each body become each other kind of JSON.
func (s suite) absorbed(t *testing.T) {
	kinds := []any{nil, "", "12.5", "text", json.Number("7"), json.Number("0.125"), true, map[string]any{}, map[string]any{"new": "x"}, []any{}, []any{nil}}
	for eventType, parks := range s.Essential {
		body := object(t, s.Event(eventType))
		for _, spot := range s.spots(eventType, body) {
			told := func(f drift.Finding) bool { // where an essential value is gone, another that would do is told
				return strings.HasPrefix(f.Path, spot.path) ||
					slices.ContainsFunc(parks, func(path string) bool { return strings.HasPrefix(path, spot.path) })
			}
			for _, kind := range kinds {
				spot.put(kind)
				d, all := s.dispatcher()
				e := s.Identify(encoded(t, body))
				err := d.Dispatch(t.Context(), nil, e)
				name := spot.path[strings.LastIndexByte(spot.path, '.')+1:]
				switch {
				case e.ID == "" || provider.Plain(e.Type) != eventType:
					t.Errorf("%s, %s, %v: it is named %q, %q", eventType, spot.path, kind, e.ID, e.Type)
				case (err == nil) != (len(*all) == 1):
					t.Errorf("%s, %s, %v: it is handled %d times, %v", eventType, spot.path, kind, len(*all), err)
				case err != nil && !strings.Contains(err.Error(), strings.TrimSuffix(name, "[]")):
					t.Errorf("%s, %s, %v: the error does not tell the path: %v", eventType, spot.path, kind, err)
				case err != nil && !slices.ContainsFunc(d.Drift(), told):
					t.Errorf("%s, %s, %v: %v, and the drift has only %v", eventType, spot.path, kind, err, findings(d))
				}
				spot.put(spot.old)
			}
		}
	}
}

func (s suite) persons(t *testing.T) {
	const person = "5511987654321"
	for eventType, paths := range s.Personal {
		for _, path := range paths {
			e, err := s.Parse(s.Event(eventType, Set(path, json.RawMessage(`"`+person+`"`))))
			if err != nil {
				t.Fatal(err)
			}
			if said := printed(e); strings.Contains(said, person) || !strings.Contains(said, "redacted") {
				t.Errorf("%s, %s: it is printed as %s", eventType, path, said)
			}
			if body, err := json.Marshal(e); err != nil || !bytes.Contains(body, []byte(person)) {
				t.Errorf("%s, %s: it is written as %s, %v", eventType, path, body, err)
			}
		}
	}
}

func (s suite) secrets(t *testing.T) {
	secret := s.Secrets[0]
	if secret == "" {
		t.Skip("it has none")
	}
	d := s.New(secret, secret)
	said := printed(d) + printed(settings(d)) + printed(reflect.ValueOf(d).Elem()) // the last is a copy
	text, err := json.Marshal(d)
	if err != nil || !strings.Contains(fmt.Sprint(d), "redacted") || !strings.Contains(string(text), "redacted") {
		t.Errorf("a dispatcher is printed as %v, and as JSON as %s, %v", d, text, err)
	}
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), strings.Trim(fmt.Sprint([]byte(secret)), "[]"), fmt.Sprintf("%q", secret)} {
		if strings.Contains(said+string(text), form) {
			t.Errorf("the secret is in what is printed:\n%s", said)
		}
	}
}

// printed is all that fmt and slog print of a value, by itself and inside of others.
func printed(v any) string {
	var out bytes.Buffer
	for _, held := range []any{v, struct{ Held any }{v}, []any{v}, map[string]any{"v": v}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%o", "%e"} {
			fmt.Fprintf(&out, verb+"\n", held)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", "v", v, slog.Group("g", "v", v))
	}
	return out.String()
}

// spot is a value in a body, and how to put another in its place.
type spot struct {
	path   string // as in a finding
	old    any
	put    func(any)
	remove func() // nil for an element of a list
}

// spots returns the values of a body, without its type, and what is below the application's own objects.
func (s suite) spots(eventType string, body map[string]any) []spot {
	return slices.DeleteFunc(spots("", body, nil), func(at spot) bool {
		return at.old == any(eventType) && !strings.Contains(at.path, ".") ||
			slices.ContainsFunc(s.Free, func(free string) bool { return strings.HasPrefix(at.path, free+".") })
	})
}

func spots(path string, v any, at []spot) []spot {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			below := strings.TrimPrefix(path+"."+field, ".")
			at = append(at, spot{below, v[field], func(to any) { v[field] = to }, func() { delete(v, field) }})
			at = spots(below, v[field], at)
		}
	case []any:
		for i := range v {
			at = append(at, spot{path + "[]", v[i], func(to any) { v[i] = to }, nil})
			at = spots(path+"[]", v[i], at)
		}
	}
	return at
}

func object(t *testing.T, body []byte) (out map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func encoded(t *testing.T, body map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// leaves returns the values of a body by their paths. A number is exact, however it is written.
func leaves(body map[string]any) map[string]string {
	out := make(map[string]string)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(path+"."+name, value)
			}
			if len(v) == 0 {
				out[path] = "{}"
			}
		case []any:
			for i, value := range v {
				walk(fmt.Sprint(path, ".", i), value)
			}
			if len(v) == 0 {
				out[path] = "[]"
			}
		case json.Number:
			exact, _ := new(big.Rat).SetString(v.String())
			out[path] = exact.String()
		default:
			out[path] = fmt.Sprintf("%#v", v)
		}
	}
	walk("", body)
	return out
}
