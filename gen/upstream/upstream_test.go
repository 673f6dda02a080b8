package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/gen/spec"
)

// text is a file of testdata, with replacements.
func text(t testing.TB, name string, oldnew ...string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("%s has no %s", name, oldnew[i])
		}
		text = strings.ReplaceAll(text, oldnew[i], oldnew[i+1])
	}
	return text
}

// shop is the spec of testdata, with replacements.
func shop(t testing.TB, oldnew ...string) *spec.Spec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.yaml")
	err := os.WriteFile(path, []byte(text(t, "spec.yaml", oldnew...)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s, err := spec.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// differences lists what only one side has: - for the spec's, + for the provider's.
func differences(t testing.TB, s *spec.Spec, document string) (out []string) {
	t.Helper()
	ours, theirs, err := Align(s, []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	before, after := parts(t, ours), parts(t, theirs)
	for _, part := range before {
		if !slices.Contains(after, part) {
			out = append(out, "-"+part)
		}
	}
	for _, part := range after {
		if !slices.Contains(before, part) {
			out = append(out, "+"+part)
		}
	}
	return out
}

// parts lists the events, properties and values of a document, sorted.
func parts(t testing.TB, document []byte) (out []string) {
	t.Helper()
	var root struct {
		Webhooks map[string]any
		Paths    map[string]struct {
			Get struct {
				Responses map[string]struct {
					Content map[string]struct{ Schema schema }
				}
			}
		}
	}
	if err := json.Unmarshal(document, &root); err != nil {
		t.Fatal(err)
	}
	for name := range root.Webhooks {
		out = append(out, "event "+name)
	}
	for name, path := range root.Paths {
		s := path.Get.Responses["200"].Content["application/json"].Schema
		for _, value := range s.Enum {
			out = append(out, fmt.Sprint(name, " ", value))
		}
		for property, p := range s.Properties {
			kind := p.kind()
			if p.Items != nil {
				kind += " of " + p.Items.kind()
			}
			if p.Enum != nil {
				kind += fmt.Sprint(p.Enum)
			}
			out = append(out, name+"."+property+" "+kind)
		}
	}
	slices.Sort(out)
	return out
}

func TestADocumentThatSaysTheSameIsAligned(t *testing.T) {
	t.Parallel()
	for _, document := range []string{text(t, "same.json"), text(t, "same.json", `"3.0.1"`, `"3.1.0"`)} {
		if diff := differences(t, shop(t), document); diff != nil {
			t.Errorf("got the differences %q", diff)
		}
	}
}

func TestEveryDifferenceIsInTheFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		oldnew []string // in the document
		want   []string
	}{
		{"a new event, listed twice", []string{`"ORDER_LOST"]`, `"ORDER_LOST", "ORDER_FOUND"]`}, []string{"+event ORDER_FOUND"}},
		{"a new event, at the items only", []string{`"enum": ["ORDER_PAID", "ORDER_LOST"],`, ``, `"ORDER_LOST"]}`, `"ORDER_LOST", "ORDER_FOUND"]}`}, []string{"+event ORDER_FOUND"}},
		{"an event that the spec has as another name", []string{`"ORDER_PAID"`, `"ORDER_PAID", "ORDER_WAS_PAID"`}, nil},
		{"an event is gone", []string{`, "ORDER_LOST"]`, `]`}, []string{"-event ORDER_LOST"}},
		{"an event is documented at last", []string{`"ORDER_LOST"]`, `"ORDER_LOST", "ORDER_SEEN"]`}, []string{"+event ORDER_SEEN"}},
		{"a property has another name", []string{`"note": {"type": "string"}`, `"gift": {"type": "boolean"}`}, []string{"-/Order.note string", "+/Order.gift boolean"}},
		{"a property is documented at last", []string{`"note": {`, `"hidden": {"type": "string"}, "note": {`}, []string{"+/Order.hidden string"}},
		{"the mark stands beside a reference", []string{`"note": {`, `"seller": {"$ref": "#/components/schemas/BuyerDTO"}, "note": {`}, []string{"+/Order.seller object"}},
		{"a type changed", []string{`"total": {"type": "number"}`, `"total": {"type": "string"}`}, []string{"-/Order.total number", "+/Order.total string"}},
		{
			"a type changed in one of two answers",
			[]string{`"note": {"type": "string"}`, `"note": {"type": "boolean"}`, `"buyer": {`, `"note": {"type": "string"}, "buyer": {`},
			[]string{"-/Order.note string", "+/Order.note boolean"},
		},
		{"a text became a list", []string{`"note": {"type": "string"}`, `"note": {"type": "array"}`}, []string{"-/Order.note string", "+/Order.note array"}},
		{"no text and no number", []string{`"integer"`, `"object"`}, []string{"-/Order.number string", "+/Order.number object"}},
		{"a text became an enum", []string{`"note": {"type": "string"}`, `"note": {"type": "string", "enum": ["A", "B"]}`}, []string{"-/Order.note string", "+/Order.note string[A B]"}},
		{"no type at all", []string{`"note": {"type": "string"}`, `"note": {}`}, nil},
		{"a new value", []string{`["PAID"]`, `["PAID", "GONE"]`}, []string{"+/OrderStatus GONE"}},
		{"another value", []string{`["PAID"]`, `["PAYED"]`}, []string{"-/OrderStatus PAID", "+/OrderStatus PAYED"}},
		{"a value is documented at last", []string{`["PAID"]`, `["PAID", "SEEN"]`}, []string{"+/OrderStatus SEEN"}},
		{"other values in a list", []string{`"items": {"type": "string"}`, `"items": {"type": "string", "enum": ["RED", "BLUE"]}`}, []string{"-/OrderTag GREEN", "+/OrderTag BLUE"}},
		{
			"an object in a list",
			[]string{`"text": {"type": "string"}`, `"text": {"type": "number"}, "more": {"type": "string"}`},
			[]string{"-/OrderLine.text string", "+/OrderLine.more string", "+/OrderLine.text number"},
		},
		{"a list of something else", []string{`"items": {"$ref": "#/components/schemas/OrderLineDTO"}`, `"items": {"type": "string"}`}, []string{
			"-/Order.lines array of object", "+/Order.lines array of string",
		}},
		{"an object in the other answer", []string{`["string", "null"]`, `"integer"`}, []string{"-/Person.name string", "+/Person.name integer"}},
		{"a reference that goes in circles says nothing", []string{"BuyerDTO", "Circle"}, nil},
	} {
		if diff := cmp.Diff(tt.want, differences(t, shop(t), text(t, "same.json", tt.oldnew...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestWhatCannotBeComparedSaysWhy(t *testing.T) {
	t.Parallel()
	whole := text(t, "same.json")
	for _, tt := range []struct{ document, want, reason string }{
		{"\n<!DOCTYPE html><html></html>", "not whole JSON", "a page"},
		{"", "not whole JSON", "an empty document"},
		{whole[:len(whole)/2], "not whole JSON", "half a document"},
		{"openapi: 3.0.1", "not whole JSON", "YAML"},
		{`[]`, "not whole JSON", "a list"},
		{`null`, "no OpenAPI 3 document", "null"},
		{`{"swagger":"2.0","definitions":{}}`, "no OpenAPI 3 document", "Swagger 2"},
		{`{"openapi":"3.0.1","components":{"schemas":{"A":null}}}`, "no list of event names", "another API"},
		{text(t, "same.json", `"events"`, `"eventTypes"`), "no list of event names", "the list of events is elsewhere"},
		{text(t, "same.json", `"OrderSaveResponseDTO"`, `"OrderMadeResponseDTO"`), "no schema OrderSaveResponseDTO for Order", "a schema has another name"},
	} {
		_, _, err := Align(shop(t), []byte(tt.document))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.reason, err, tt.want)
		}
	}
	_, _, err := Align(shop(t, "{Order: [", "{Parcel: ["), []byte(whole))
	if err == nil || !strings.Contains(err.Error(), "no schema Parcel: correct the table") {
		t.Errorf("a table that names no schema: got %v", err)
	}
}

// The table names schemas of the real spec.
func TestTheTableOfCounterpartsFitsTheSpec(t *testing.T) {
	t.Parallel()
	s, err := spec.Load("../../spec/asaas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Upstream.Schemas) < 15 {
		t.Errorf("the spec compares %d schemas", len(s.Upstream.Schemas))
	}
	for name := range s.Upstream.Schemas {
		if s.Schemas()[name] == nil {
			t.Errorf("the spec has no schema %s", name)
		}
	}
}

// A document of OpenAPI 3.1 may have the webhooks themselves, and our own names.
func TestASpecWithoutATableIsComparedByName(t *testing.T) {
	t.Parallel()
	const document = `{"openapi": "3.1.0", "webhooks": {"ORDER_PAID": {}, "ORDER_FOUND": {}},
		"components": {"schemas": {"Person": {"type": "object", "properties": {"name": {"type": "integer"}}}}}}`
	const table = "x-upstream:\n  document: same.json\n  events: WebhookConfig.events\n  schemas: {Order: [OrderGetResponseDTO, OrderSaveResponseDTO]}\n"
	want := []string{"-/Person.name string", "-event ORDER_LOST", "+/Person.name integer", "+event ORDER_FOUND"}
	if diff := cmp.Diff(want, differences(t, shop(t, table, ""), document)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// For any document the alignment ends, and gives the same again.
func FuzzAlign(f *testing.F) {
	f.Add(text(f, "same.json"))
	for _, schema := range []string{
		`null`, `{"type":["null"]}`, `{"$ref":"#/components/schemas/OrderGetResponseDTO"}`,
		`{"properties":{"id":null,"buyer":{"$ref":"#/components/schemas/OrderGetResponseDTO"},"a\nb":{"enum":[1,"x"]}}}`,
		`{"properties":{"tags":{"type":"array"},"lines":{"type":"array","items":{"properties":{"order":{"$ref":"#/components/schemas/OrderGetResponseDTO"}}}}}}`,
	} {
		f.Add(`{"openapi":"3.0.1","components":{"schemas":{"OrderSaveResponseDTO":{},"WebhookConfigX":{"properties":{"events":{"enum":["A"]}}},"OrderGetResponseDTO":` + schema + `}}}`)
	}
	s := shop(f)
	f.Fuzz(func(t *testing.T, document string) {
		if _, _, err := Align(s, []byte(document)); err != nil {
			return
		}
		if diff := cmp.Diff(differences(t, s, document), differences(t, s, document)); diff != "" {
			t.Errorf("the second time it is different:\n%s", diff)
		}
	})
}
