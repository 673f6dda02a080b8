package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// The mark stands for a person, in texts and as a number.
const (
	mark       = "Maria-5511987654321"
	markNumber = "5511987654321"
)

// marker writes the mark into the fields that a schema marks as personal.
type marker struct {
	schemas map[string]any
	value   any             // text or number
	marked  map[string]bool // the fields that were
}

func (m *marker) walk(at string, schema, value any) any {
	s, ok := schema.(map[string]any)
	if !ok || value == nil {
		return value
	}
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return m.walk(name, m.schemas[name], value)
	}
	if s["x-personal"] == true {
		m.marked[at] = true
		return m.fill(value)
	}
	for _, several := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := s[several].([]any)
		for _, one := range list {
			value = m.walk(at, one, value)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, property := range properties {
			if inner, ok := v[name]; ok {
				v[name] = m.walk(at+"."+name, property, inner)
			}
		}
	case []any:
		for n := range v {
			v[n] = m.walk(at, s["items"], v[n])
		}
	}
	return value
}

// fill marks each text in a value.
func (m *marker) fill(value any) any {
	switch v := value.(type) {
	case string:
		return m.value
	case map[string]any:
		for name := range v {
			v[name] = m.fill(v[name])
		}
	case []any:
		for n := range v {
			v[n] = m.fill(v[n])
		}
	}
	return value
}

// personalIn lists the fields of a spec that are personal, as marker names them.
func personalIn(at string, schema any, found map[string]bool) {
	s, _ := schema.(map[string]any)
	if s["x-personal"] == true {
		found[at] = true
	}
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		personalIn(at+"."+name, property, found)
	}
	for _, several := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := s[several].([]any)
		for _, one := range list {
			personalIn(at, one, found)
		}
	}
	if items, ok := s["items"]; ok {
		personalIn(at, items, found)
	}
}

// Each personal field of each event of both providers, printed, logged, watched, and decoded in vain.
func TestNoPersonalFieldIsPrintedLoggedOrReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file   string
		bodies func(eventType string) [][]byte
		parse  func([]byte) (any, error)
	}{
		{"../asaas.yaml", func(eventType string) [][]byte {
			if t := asaas.EventType(eventType); t.Known() {
				return [][]byte{asaastest.Event(t)}
			}
			return nil // a question about a withdrawal, which is no event
		}, func(b []byte) (any, error) { return asaas.Parse(b) }},
		{"../zeltapay.yaml", func(eventType string) [][]byte {
			return [][]byte{zeltapaytest.Event(zeltapay.EventType(eventType)), zeltapaytest.Nested.Event(zeltapay.EventType(eventType))}
		}, func(b []byte) (any, error) { return zeltapay.Parse(b) }},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			var spec map[string]any
			if err := yaml.Unmarshal(text, &spec); err != nil {
				t.Fatal(err)
			}
			schemas := spec["components"].(map[string]any)["schemas"].(map[string]any)
			m := &marker{schemas: schemas, marked: map[string]bool{}}
			watch := &drift.Watch{Every: 1}
			for eventType, webhook := range spec["webhooks"].(map[string]any) {
				content := webhook.(map[string]any)["post"].(map[string]any)["requestBody"].(map[string]any)["content"].(map[string]any)
				schema := content["application/json"].(map[string]any)["schema"]
				for _, body := range c.bodies(eventType) {
					for _, m.value = range []any{mark, json.RawMessage(markNumber), map[string]any{mark: mark}} {
						var decoded any
						if err := json.Unmarshal(body, &decoded); err != nil {
							t.Fatal(err)
						}
						marked, err := json.Marshal(m.walk("", schema, decoded))
						if err != nil {
							t.Fatal(err)
						}
						e, failure := c.parse(marked)
						if m.value == any(mark) && failure != nil {
							t.Fatalf("%s: %v", eventType, failure)
						}
						said := fmt.Sprint(failure)
						if failure == nil {
							var log bytes.Buffer
							for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
								slog.New(h).Info("an event", "e", e, slog.Group("g", "e", e))
							}
							slog.New(slog.NewTextHandler(&log, nil)).Info("events", "all", []any{e}) // as JSON, a list is that of bodies
							said += log.String() + fmt.Sprintf("%v %+v %#v %s %q %x %v %+v", e, e, e, e, e, e, []any{e}, struct{ E any }{e})
						}
						watch.Look(eventType, e, failure, marked)
						said += fmt.Sprintf("%+v", watch.Findings())
						for _, secret := range []string{mark, markNumber, fmt.Sprintf("%x", mark)} {
							if n := strings.Index(said, secret); n >= 0 {
								t.Fatalf("%s with a %T: a person is shown: …%s…", eventType, m.value, said[max(0, n-200):min(len(said), n+60)])
							}
						}
					}
				}
			}
			personal := map[string]bool{}
			for name, schema := range schemas {
				personalIn(name, schema, personal)
			}
			for field := range m.marked {
				delete(personal, field)
			}
			if len(m.marked) == 0 {
				t.Error("nothing was marked")
			}
			for field := range personal {
				if !strings.HasPrefix(field, "Withdrawal") && !strings.HasPrefix(field, "Webhook") && !strings.HasPrefix(field, "Customer.") { // which are no events
					t.Errorf("%s is personal, and no event that was tried has it", field)
				}
			}
		})
	}
}

// Which fields of it are personal, no spec says.
func TestNothingOfTheBodyOfAnUnknownEventIsPrintedOrLogged(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func([]byte) (any, error){
		"asaas":    func(b []byte) (any, error) { return asaas.Parse(b) },
		"zeltapay": func(b []byte) (any, error) { return zeltapay.Parse(b) },
	} {
		body := []byte(`{"id": "evt_1", "event": "CARD_LOST", "type": "card.lost", "card": {"holder": "` + mark + `"}}`)
		e, err := parse(body)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(h).Info("an event", "e", e, slog.Group("g", "e", e))
		}
		said := log.String() + fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v", e, e, e, e, e, e, e, []any{e}, struct{ E any }{e})
		for _, secret := range []string{mark, fmt.Sprintf("%x", mark), strings.Trim(fmt.Sprint([]byte(mark)), "[]")} {
			if strings.Contains(said, secret) {
				t.Errorf("%s: a person is shown: %s", name, said)
			}
		}
		if !strings.Contains(said, fmt.Sprintf("[%d bytes]", len(body))) {
			t.Errorf("%s: the size of the body is not shown: %s", name, said)
		}
		if text, err := json.Marshal(e); err != nil || !strings.Contains(string(text), mark) {
			t.Errorf("%s: json.Marshal does not write the body: %s, %v", name, text, err)
		}
	}
}
