package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/internal/fixture"
)

// sampler makes bodies.
type sampler struct {
	*spec
	layout string
	named  string // the event type that the body says it is
	sparse bool   // required properties and the key only; of the other scalars every second is null
	keys   []string

	fits   string             // the event type that values are chosen for
	open   []string           // paths of objects that may have any property
	inside []*openapi3.Schema // the objects around a value, which end a recursion
}

// event makes a body of an event's schema.
func (s *sampler) event(schema *openapi3.Schema, eventType string) fixture.Object {
	s.fits, s.open = eventType, nil
	return append(s.object("", s.schemas()[envelopeSchema].Value), s.object("", schema)...)
}

func (s *sampler) object(path string, of *openapi3.Schema) fixture.Object {
	s.inside = append(s.inside, of)
	out := fixture.Object{}
	optional := 0
	for _, name := range inOrder(of.Properties, schemaOrigin) {
		p := of.Properties[name]
		plain, _ := withoutNull(p)
		switch layout := layoutOf(p); {
		case layout != "" && layout != s.layout:
		case slices.Contains(s.inside, plain.Value):
		case s.sparse && !slices.Contains(of.Required, name) && !s.leadsToKey(join(path, name)):
			if isObject(plain) || typeOf(plain.Value) == "array" {
				continue
			}
			if optional%2 == 0 {
				out = append(out, fixture.Member{Name: name})
			}
			optional++
		default:
			out = append(out, fixture.Member{Name: name, Value: s.value(join(path, name), p)})
		}
	}
	s.inside = s.inside[:len(s.inside)-1]
	return out
}

// leadsToKey tells whether a path is on the way to the id of what the event is
// about: an event without it is about nothing.
func (s *sampler) leadsToKey(path string) bool {
	return slices.ContainsFunc(s.keys, func(key string) bool { return strings.HasPrefix(key+".", path+".") })
}

func isObject(plain *openapi3.SchemaRef) bool {
	return typeOf(plain.Value) == "object" || len(plain.Value.Properties) > 0
}

// value makes the value of a property: one that fits the event type, else the
// spec's example, else one that its type, format, name and description suggest.
func (s *sampler) value(path string, p *openapi3.SchemaRef) any {
	plain, _ := withoutNull(p)
	if isHandWritten(plain.Value) && schemaName(plain.Ref) != eventTypeName {
		s.open = append(s.open, path)
	}
	if v, ok := fitting(s.fits, path, plain.Value); ok {
		return v
	}
	for _, schema := range []*openapi3.Schema{p.Value, plain.Value} {
		if v := exampleOf(schema); v != nil {
			return v
		}
	}
	return s.suggested(path, p, plain)
}

func (s *sampler) suggested(path string, p, plain *openapi3.SchemaRef) any {
	switch schema := plain.Value; {
	case schemaName(plain.Ref) == eventTypeName:
		return s.named
	case isHandWritten(schema):
		return fixture.Object{{Name: "key", Value: "value"}}
	case len(schema.Enum) > 0:
		return firstOf(schema.Enum)
	case typeOf(schema) == "array" && (s.sparse || slices.Contains(s.inside, schema.Items.Value)):
		return []any{}
	case typeOf(schema) == "array":
		return []any{s.value(join(path, "0"), schema.Items)}
	case isObject(plain):
		return s.object(path, schema)
	case typeOf(schema) == "boolean":
		return false
	case typeOf(schema) == "string":
		return stringFor(path, schema.Format, p.Value.Description)
	default:
		return numberFor(path, s.fits, p.Value.Description, schema)
	}
}

func exampleOf(s *openapi3.Schema) any {
	if s.Example == nil && len(s.Examples) > 0 {
		return s.Examples[0]
	}
	return s.Example
}

// firstOf is the first value of an enum that says something.
func firstOf(enum []any) any {
	for _, v := range enum {
		if v != "UNDEFINED" && v != "UNKNOWN" {
			return v
		}
	}
	return enum[0]
}
