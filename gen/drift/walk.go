package drift

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/idem/drift"

	"github.com/paghooks/paghooks/gen/spec"
)

// difference is something in a body that the spec does not know, and where in
// the spec it would have to be. The values are for guessing types, and are
// never printed.
type difference struct {
	drift.Finding

	schema, property string // "" where no change of the spec is possible
	values           []any
	proposed         bool
}

// finder compares bodies with a spec. The spec has passed the linter.
type finder struct {
	*spec.Spec
	schemaOf  map[string]string             // by event type, and by its aliases
	found     map[drift.Finding]*difference // by event type, path and kind
	eventType string                        // of the body at hand
	counted   map[*difference]bool          // in the body at hand
}

func newFinder(s *spec.Spec) *finder {
	f := &finder{Spec: s, schemaOf: make(map[string]string), found: make(map[drift.Finding]*difference), counted: make(map[*difference]bool)}
	for _, family := range s.Families() {
		for _, e := range family.Events {
			for _, name := range append(e.Aliases, e.Type) {
				f.schemaOf[name] = family.Struct
			}
		}
	}
	return f
}

// differences lists the findings, in the order of drift.Compare.
func (f *finder) differences() []*difference {
	return slices.SortedFunc(maps.Values(f.found), func(a, b *difference) int { return drift.Compare(a.Finding, b.Finding) })
}

func (f *finder) report(path string, kind drift.Kind, schema, property string, value any) {
	key := drift.Finding{EventType: f.eventType, Path: path, Kind: kind}
	if f.eventType != "" && f.schemaOf[f.eventType] == "" {
		key.EventType = drift.Name(f.eventType)
	}
	d := f.found[key]
	if d == nil {
		d = &difference{Finding: key, schema: schema, property: property}
		f.found[key] = d
	}
	d.values = append(d.values, value)
	if !f.counted[d] { // a list has the same path many times
		f.counted[d] = true
		d.Count++
	}
}

// body compares one body.
func (f *finder) body(v any) {
	event, _ := v.(map[string]any)
	f.eventType, _ = event[f.TypeField()].(string)
	f.counted = make(map[*difference]bool)
	switch schema := f.schemaOf[f.eventType]; {
	case f.Provider.Event.Ping != "" && event[f.Provider.Event.Ping] != nil: // a test of the address
	case f.eventType == "":
		f.report("", drift.Unreadable, "", "", nil)
	case schema != "":
		f.object("", schema, f.Schemas()[schema].Value, event)
	default:
		f.report("", drift.UnknownEvent, "", f.eventType, event)
		f.unknownEvent(event)
	}
}

// unknownEvent compares the fields that an event of an unknown type shares with
// others: the struct of its family, or the envelope alone.
func (f *finder) unknownEvent(event map[string]any) {
	if family := f.familyOf(event); family != "" {
		f.object("", family, f.Schemas()[family].Value, event)
		return
	}
	common := maps.Clone(event)
	maps.DeleteFunc(common, func(name string, _ any) bool { return f.Envelope().Properties[name] == nil })
	f.object("", spec.EnvelopeName, f.Envelope(), common)
}

// familyOf is the schema of the known events that have a field of the event's;
// "" if there is none.
func (f *finder) familyOf(event map[string]any) string {
	for _, name := range spec.InOrder(f.Schemas(), spec.SchemaOrigin) {
		s := f.Schemas()[name].Value
		for field := range s.Properties {
			if _, ok := event[field]; ok && spec.IsEvent(s) {
				return name
			}
		}
	}
	return ""
}

func (f *finder) object(path, schema string, s *openapi3.Schema, v map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		property, required := f.Property(s, name)
		owner := f.owner(schema, s, name)
		at := drift.Join(path, name)
		switch {
		case property == nil:
			f.report(at, drift.UnknownField, schema, name, v[name])
		case v[name] != nil:
			f.value(at, owner, name, property, v[name])
		case required && !isNullable(property):
			f.report(at, drift.UnexpectedNull, owner, name, nil)
		}
	}
	for _, name := range f.requiredOf(s) {
		if _, ok := v[name]; !ok {
			f.report(drift.Join(path, name), drift.MissingRequired, f.owner(schema, s, name), name, nil)
		}
	}
}

// owner is the schema that a property is written in: an event has those of the
// envelope too.
func (f *finder) owner(schema string, s *openapi3.Schema, property string) string {
	if s.Properties[property] == nil && spec.IsEvent(s) && f.Envelope().Properties[property] != nil {
		return spec.EnvelopeName
	}
	return schema
}

func (f *finder) requiredOf(s *openapi3.Schema) []string {
	if spec.IsEvent(s) {
		return slices.Concat(f.Envelope().Required, s.Required)
	}
	return s.Required
}

func isNullable(r *openapi3.SchemaRef) bool {
	_, nullable := spec.WithoutNull(r)
	return nullable
}

// value compares a value that is not null.
func (f *finder) value(path, schema, property string, ref *openapi3.SchemaRef, v any) {
	plain, _ := spec.WithoutNull(ref)
	s := plain.Value
	switch {
	case spec.IsHandWritten(s): // its Go type takes any value, and metadata is the merchant's own
	case !f.fitsType(s, v):
		f.report(path, drift.ChangedType, "", "", nil)
	case len(s.Enum) > 0:
		if !slices.Contains(s.Enum, v) {
			f.report(path, drift.UnknownValue, spec.SchemaName(plain.Ref), "", v)
		}
	case spec.TypeOf(s) == "object":
		f.object(path, spec.SchemaName(plain.Ref), s, v.(map[string]any))
	case spec.TypeOf(s) == "array":
		f.elements(path+"[]", schema, property, s.Items, v.([]any))
	}
}

func (f *finder) elements(path, schema, property string, items *openapi3.SchemaRef, elements []any) {
	for _, v := range elements {
		if v == nil {
			f.report(path, drift.UnexpectedNull, "", "", nil)
			continue
		}
		f.value(path, schema, property, items, v)
	}
}

// fitsType reports whether a value is of a schema's type.
func (f *finder) fitsType(s *openapi3.Schema, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return spec.TypeOf(s) == "object"
	case []any:
		return spec.TypeOf(s) == "array"
	case bool:
		return spec.TypeOf(s) == "boolean"
	case string:
		return spec.TypeOf(s) == "string"
	case json.Number:
		return spec.TypeOf(s) == "number" || spec.TypeOf(s) == "integer" && isWhole(v) || f.isTolerant(s)
	}
	return false
}

// isTolerant reports whether a text may be sent as a number.
func (f *finder) isTolerant(s *openapi3.Schema) bool {
	format, _ := f.FormatOf(s)
	return format.Number
}

// isWhole reports whether a number has no fraction, however it is spelled.
func isWhole(n json.Number) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	if len(exponent) > 3 {
		return false // Rat would write all its zeros
	}
	r, ok := new(big.Rat).SetString(n.String())
	return ok && r.IsInt()
}
