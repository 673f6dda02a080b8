package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// The names that the generator knows.
const (
	SchemaPrefix  = "#/components/schemas/"
	EnvelopeName  = "Envelope"
	EventTypeName = "EventType"

	EnumDocsName  = "x-enum-descriptions" // value of an enum: its description
	EntityKeyName = "x-entity-key"        // path, or paths, to the id of an event's entity
	LayoutName    = "x-layout"            // the one layout of a body that has a property

	goTypeName  = "x-go-type" // a schema with a Go type that is written by hand
	aliasesName = "x-aliases" // list of other names that an event type comes by
	exampleName = "x-example" // path: a value that an event of this type has, and others of its family have not
)

// IsEvent reports whether a schema is that of an event: the envelope, and more.
func IsEvent(s *openapi3.Schema) bool {
	return slices.ContainsFunc(s.AllOf, func(r *openapi3.SchemaRef) bool {
		return r.Ref == SchemaPrefix+EnvelopeName
	})
}

// IsHandWritten reports whether the Go type of a schema is written by hand.
func IsHandWritten(s *openapi3.Schema) bool {
	_, ok := s.Extensions[goTypeName]
	return ok
}

// IsFree reports whether a schema with a Go type of its own has fields that no spec names, so that any of them may
// be personal: the JSON that was sent, or an object with additionalProperties.
func IsFree(s *openapi3.Schema) bool {
	free := s.AdditionalProperties
	return s.Extensions[goTypeName] == RawType || IsHandWritten(s) && (free.Schema != nil || free.Has != nil && *free.Has)
}

func isNull(r *openapi3.SchemaRef) bool {
	return r.Ref == "" && r.Value != nil && slices.Equal(r.Value.Type.Slice(), []string{"null"})
}

func isReference(r *openapi3.SchemaRef) bool { return r.Ref != "" }

// WithoutNull returns the schema of a property that is not null, and whether it
// can be null. "oneOf: [$ref, null]" is the only union there is.
func WithoutNull(r *openapi3.SchemaRef) (plain *openapi3.SchemaRef, nullable bool) {
	if r.Ref != "" || r.Value == nil {
		return r, false
	}
	if union := UnionOf(r.Value); len(union) == 2 && slices.ContainsFunc(union, isNull) {
		if i := slices.IndexFunc(union, isReference); i >= 0 {
			return union[i], true
		}
	}
	return r, slices.Contains(r.Value.Type.Slice(), "null")
}

// Resolved returns the schema of a value that is not null. Of a reference it is the component itself: ref.Value may
// be a copy.
func (s *Spec) Resolved(ref *openapi3.SchemaRef) *openapi3.Schema {
	plain, _ := WithoutNull(ref)
	if component := s.Schemas()[SchemaName(plain.Ref)]; component != nil {
		return component.Value
	}
	return plain.Value
}

// UnionOf is the schemas of which a value fits one.
func UnionOf(s *openapi3.Schema) openapi3.SchemaRefs {
	return slices.Concat(s.OneOf, s.AnyOf)
}

// inside are the schemas that a schema is made of.
func inside(s *openapi3.Schema) []*openapi3.SchemaRef {
	out := slices.Concat(UnionOf(s), s.AllOf, slices.Collect(maps.Values(s.Properties)))
	if s.Items != nil {
		out = append(out, s.Items)
	}
	return out
}

// TypeOf is a schema's type, apart from null; "" unless there is exactly one.
func TypeOf(s *openapi3.Schema) string {
	types := slices.DeleteFunc(slices.Clone(s.Type.Slice()), func(t string) bool { return t == "null" })
	if len(types) != 1 {
		return ""
	}
	return types[0]
}

// SchemaName is the name of a component that a $ref leads to.
func SchemaName(ref string) string { return strings.TrimPrefix(ref, SchemaPrefix) }

// Envelope returns the schema that all events have in common.
func (s *Spec) Envelope() *openapi3.Schema { return s.Schemas()[EnvelopeName].Value }

// TypeField is the envelope's property that names the event type.
func (s *Spec) TypeField() string {
	for name, property := range s.Envelope().Properties {
		if SchemaName(property.Ref) == EventTypeName {
			return name
		}
	}
	return ""
}

// With is m and one more entry. m itself is left as it is: it is read again for
// the other file.
func With(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	maps.Copy(out, m)
	return out
}

// StringsOf is an extension that is a list of texts; nil if it is none.
func StringsOf(extension any) (list []string) {
	values, _ := extension.([]any)
	for _, v := range values {
		s, _ := v.(string)
		list = append(list, s)
	}
	return list
}

// Property finds a property of a schema or, for an event, of its envelope.
func (s *Spec) Property(of *openapi3.Schema, name string) (property *openapi3.SchemaRef, required bool) {
	if p := of.Properties[name]; p != nil {
		return p, slices.Contains(of.Required, name)
	}
	if IsEvent(of) {
		return s.Property(s.Schemas()[EnvelopeName].Value, name)
	}
	return nil, false
}

const personalName = "x-personal" // the value is about a person, and not printed

// IsPersonal reports whether a property is not printed: it, or what it refers to, has x-personal or the
// format password.
func IsPersonal(ref *openapi3.SchemaRef) bool {
	plain, _ := WithoutNull(ref)
	return ref.Extensions[personalName] == true || ref.Value.Extensions[personalName] == true ||
		plain.Value.Extensions[personalName] == true || plain.Value.Format == "password"
}

// InOrder lists the keys of m as they stand in the file. kin-openapi keeps
// maps, so the order is read from the positions that it recorded.
func InOrder[V any](m map[string]V, origin func(V) *openapi3.Origin) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(Position(origin(m[a])), Position(origin(m[b]))), cmp.Compare(a, b))
	})
}

// Position grows through the file.
func Position(o *openapi3.Origin) int {
	if o == nil || o.Key == nil {
		return 0
	}
	return o.Key.Line<<16 + o.Key.Column
}

// SchemaOrigin returns the place of a schema, or of the reference to it, in the file.
func SchemaOrigin(s *openapi3.SchemaRef) *openapi3.Origin {
	if s.Origin == nil && s.Value != nil {
		return s.Value.Origin
	}
	return s.Origin
}

// ItemOrigin returns the place of a webhook or a path in the file.
func ItemOrigin(p *openapi3.PathItem) *openapi3.Origin { return p.Origin }

func operationOrigin(o *openapi3.Operation) *openapi3.Origin { return o.Origin }
