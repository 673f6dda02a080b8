// Package drift compares saved bodies with a spec: one body in a file, or one on each line of it.
//
//	go run github.com/paghooks/paghooks/gen@latest drift -spec shop.yaml saved/*.json
//
// It prints the event types, fields, enum values and types that the spec does not know, without
// the values of the bodies. Package idem/drift compares events while they are handled, in the
// same way.
package drift

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/gen/internal/shape"
	"github.com/paghooks/paghooks/gen/spec"
)

// Report prints a table of the differences between the bodies in files and a spec, which has passed the
// linter, and returns their number.
func Report(out io.Writer, s *spec.Spec, files []string) (int, error) {
	f := newFinder(s)
	for _, path := range files {
		if err := eachBody(path, f.body); err != nil {
			return 0, err
		}
	}
	if len(f.found) == 0 {
		return 0, nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "EVENT\tPATH\tKIND\tCOUNT")
	for _, d := range slices.SortedFunc(maps.Keys(f.found), difference.compare) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", cmp.Or(d.eventType, "-"), cmp.Or(d.path, "-"), d.kind, f.found[d])
	}
	if err := w.Flush(); err != nil {
		return 0, fmt.Errorf("gen: cannot print the table: %w", err)
	}
	return len(f.found), nil
}

// difference is a difference between bodies and the spec. Its kinds are those of package idem/drift.
type difference struct{ eventType, path, kind string }

func (d difference) compare(other difference) int {
	return cmp.Or(cmp.Compare(d.eventType, other.eventType), cmp.Compare(d.path, other.path), cmp.Compare(d.kind, other.kind))
}

// eachBody calls do with each JSON body in a file.
func eachBody(path string, do func(any)) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("gen: cannot read the bodies, check the path: %w", err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.UseNumber()
	for {
		var v any
		switch err := decoder.Decode(&v); err {
		case nil:
			do(v)
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("gen: %s is not JSON, give files of one body each, or one per line: %w", path, err)
		}
	}
}

// finder compares bodies with a spec.
type finder struct {
	*spec.Spec
	events map[string]*shape.Shape           // by event type, and by its aliases
	made   map[*openapi3.Schema]*shape.Shape // a schema may contain itself
	found  map[difference]int                // bodies that have it
}

func newFinder(s *spec.Spec) *finder {
	f := &finder{Spec: s, events: make(map[string]*shape.Shape), made: make(map[*openapi3.Schema]*shape.Shape), found: make(map[difference]int)}
	for _, family := range s.Families() {
		for _, e := range family.Events {
			for _, name := range append(e.Aliases, e.Type) {
				f.events[name] = f.shape(s.Schemas()[family.Struct].Value)
			}
		}
	}
	return f
}

// body compares one body.
func (f *finder) body(v any) {
	event, _ := v.(map[string]any)
	eventType, _ := event[f.TypeField()].(string)
	switch known := f.events[eventType]; {
	case f.Provider.Event.Ping != "" && event[f.Provider.Event.Ping] != nil: // a test of the address
	case eventType == "":
		f.found[difference{kind: "unreadable"}]++
	case known == nil:
		f.found[difference{eventType: shape.Name(eventType), kind: "unknown_event"}]++
	default:
		seen := make(map[difference]bool) // a list has the same path many times
		known.Compare("", v, func(path, kind string) {
			if d := (difference{eventType, path, kind}); !seen[d] {
				seen[d] = true
				f.found[d]++
			}
		})
	}
}

// shape returns the JSON that fits a schema.
func (f *finder) shape(schema *openapi3.Schema) *shape.Shape {
	if made := f.made[schema]; made != nil {
		return made
	}
	s := new(shape.Shape)
	f.made[schema] = s
	if spec.IsHandWritten(schema) {
		return s // its Go type takes any value
	}
	s.Kind = spec.TypeOf(schema)
	format, _ := f.FormatOf(schema)
	switch {
	case s.Kind == "string" && len(schema.Enum) > 0:
		s.Known = func(value string) bool { return slices.Contains(schema.Enum, any(value)) }
	case s.Kind == "object":
		s.Fields = f.fields(schema)
	case s.Kind == "array":
		s.Elem = f.shape(f.Resolved(schema.Items))
	case s.Kind == "boolean":
		s.Kind = "bool"
	case s.Kind == "integer":
		s.Kind, s.Fits = "number", isWhole
	case format.Number:
		s.Fits = func(any) bool { return true } // numbers are read as texts
	}
	return s
}

// fields returns the fields of an object, and for an event also those of the envelope.
func (f *finder) fields(schema *openapi3.Schema) map[string]shape.Field {
	out := make(map[string]shape.Field)
	owners := []*openapi3.Schema{schema}
	if spec.IsEvent(schema) {
		owners = []*openapi3.Schema{f.Envelope(), schema}
	}
	for _, owner := range owners {
		for name, property := range owner.Properties {
			_, nullable := spec.WithoutNull(property)
			out[name] = shape.Field{Shape: f.shape(f.Resolved(property)), Required: slices.Contains(owner.Required, name) && !nullable}
		}
	}
	return out
}

// isWhole reports whether a value.Int holds a number: it has no fraction, however it is spelled, and at most 18 digits.
func isWhole(v any) bool {
	spelled, _ := v.(json.Number)
	n, ok := new(big.Rat).SetString(string(spelled))
	return ok && n.IsInt() && n.Num().CmpAbs(big.NewInt(1e18)) < 0
}
