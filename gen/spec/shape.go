package spec

import (
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// shape is a schema without allOf, union and const.
type shape struct {
	of      *openapi3.Schema
	ref     string         // the component that it is, maybe with other words
	beside  map[string]any // the extensions beside that reference
	null    bool           // it may be null
	nothing bool           // it is nothing but null
	raw     bool           // Go has no type for it
}

// extensions are those beside a reference, and those of what it refers to.
func (s shape) extensions() map[string]any { return merged(s.beside, s.of.Extensions) }

// merged returns the extensions of both; of an extension of both, that of the first. What is essential to one of
// them is.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(b)
	if out == nil {
		out = make(map[string]any)
	}
	maps.Copy(out, a)
	if one, ok := a[essentialName].([]any); ok {
		other, _ := b[essentialName].([]any)
		out[essentialName] = slices.Concat(one, other)
	}
	return out
}

// isName reports whether the Go type of a shape has a name.
func (s shape) isName() bool {
	return !s.raw && !IsHandWritten(s.of) && (len(s.of.Properties) > 0 || IsEvent(s.of) || len(s.of.Enum) > 0)
}

// flat returns the shape of a schema. seen are the components around it.
func (n *normal) flat(ref *openapi3.SchemaRef, seen ...string) shape { return n.part(ref, false, seen) }

// part returns the shape of a schema. If it is a part of an object, a union of objects in it has the fields of all.
func (n *normal) part(ref *openapi3.SchemaRef, ofObject bool, seen []string) shape {
	if name := SchemaName(ref.Ref); n.from[name] != nil {
		if slices.Contains(seen, name) {
			return shape{of: &openapi3.Schema{}}
		}
		of := n.from[name]
		out := n.part(of, ofObject, append(slices.Clip(seen), name))
		if out.ref == "" || of.Ref == "" && len(of.Value.AllOf) > 0 {
			v := *out.of
			v.Extensions = out.extensions()
			out.of, out.ref, out.beside = &v, name, nil
		}
		return out
	}
	if IsHandWritten(ref.Value) {
		return shape{of: ref.Value, null: slices.Contains(ref.Value.Type.Slice(), "null")}
	}
	out := n.alone(ref.Value)
	join := ofObject || len(out.of.Properties) > 0 || len(ref.Value.AllOf) > 0 || ref.Value.Extensions[joinName] != nil || ref.Value.Discriminator != nil
	parts := make([]shape, len(ref.Value.AllOf))
	ofObject = ofObject || len(out.of.Properties) > 0
	for i, part := range ref.Value.AllOf {
		parts[i] = n.part(part, ofObject, seen)
		ofObject = ofObject || len(parts[i].of.Properties) > 0
	}
	for i, part := range ref.Value.AllOf {
		if part.Ref == SchemaPrefix+EnvelopeName && n.ownEnvelope() {
			out.of.AllOf = append(out.of.AllOf, part)
			continue
		}
		if parts[i].raw && ofObject { // the object came after it
			parts[i] = n.part(part, true, seen)
		}
		out = n.and(out, parts[i])
	}
	for _, part := range []*openapi3.SchemaRef{ref.Value.Then, ref.Value.Else} {
		if part != nil {
			s := n.flat(part, seen...)
			v := *s.of
			v.Required, s.of, s.ref = nil, &v, ""
			out = n.and(out, s)
		}
	}
	for _, union := range []openapi3.SchemaRefs{ref.Value.OneOf, ref.Value.AnyOf, n.mapped(ref.Value, seen)} {
		if len(union) > 0 {
			out = n.and(out, n.or(union, join, seen))
		}
	}
	return out
}

// alone is the shape of a schema without its allOf and unions.
func (n *normal) alone(of *openapi3.Schema) shape {
	v := *of
	out := shape{of: &v, null: of.Nullable || of.Extensions[nullableName] == true}
	v.AllOf, v.OneOf, v.AnyOf, v.Const, v.Properties = nil, nil, nil, nil, maps.Clone(of.Properties)
	if of.Const != nil {
		v.Enum = []any{of.Const}
	}
	var values []any
	for _, value := range v.Enum {
		if value == nil {
			out.null = true
		} else if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	v.Enum = values
	types := of.Type.Slice()
	if slices.Contains(types, "null") {
		out.null = true
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
		out.nothing = len(types) == 0
	}
	switch {
	case len(types) > 0 && isTextOrNumber(types):
		types, v.Format = []string{"string"}, "text"
	case len(types) > 0:
	case len(v.Properties) > 0:
		types = []string{"object"}
	case v.Items != nil:
		types = []string{"array"}
	case len(values) > 0 && areTexts(values):
		types = []string{"string"}
	case len(values) > 0:
		types = []string{kindOf(values[0])}
	}
	v.Type = nil
	if len(types) > 0 {
		v.Type = (*openapi3.Types)(&types)
	}
	if TypeOf(&v) != "string" || !areTexts(values) {
		v.Enum = nil // an enum of numbers becomes a number
	}
	out.raw = len(types) > 1 || v.Items != nil && n.mayBeNull(v.Items) || TypeOf(&v) == "array" && v.Items == nil
	return out
}

// mayBeNull reports whether an element of a list may be null, which no Go slice has.
func (n *normal) mayBeNull(items *openapi3.SchemaRef) bool {
	if of := n.from[SchemaName(items.Ref)]; of != nil {
		items = of
	}
	v := items.Value
	return v != nil && (slices.Contains(v.Type.Slice(), "null") || v.Extensions[nullableName] == true || slices.ContainsFunc(UnionOf(v), isNull))
}

func areTexts(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, ok := v.(string); return !ok })
}

func kindOf(value any) string {
	switch n := value.(type) {
	case bool:
		return "boolean"
	case float64:
		if n == float64(int64(n)) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// adds reports whether a part of an allOf says more than words about another.
func (s shape) adds(to shape) bool {
	v := s.of
	return s.raw || len(v.Properties) > 0 || len(v.Required) > 0 || len(v.AllOf) > 0 || v.Items != nil || v.Format != "" ||
		v.Extensions[essentialName] != nil || v.Type != nil && TypeOf(v) != TypeOf(to.of) ||
		slices.ContainsFunc(v.Enum, func(value any) bool { return len(to.of.Enum) == 0 || !slices.Contains(to.of.Enum, value) })
}

// and returns the shape of a value that has both, and is described by the first.
func (n *normal) and(a, b shape) shape {
	null := a.null || b.null
	switch {
	case a.nothing || !a.adds(b):
		return worded(b, a, null)
	case !b.adds(a):
		out := worded(a, b, null)
		if a.of.Description != "" {
			out.of.Description = a.of.Description
		}
		return out
	}
	v := *b.of
	out := shape{of: &v, null: null, raw: a.raw || b.raw}
	v.Extensions = merged(a.extensions(), b.extensions())
	describe(&v, a.of)
	v.Required = slices.Concat(a.of.Required, b.of.Required)
	v.AllOf = slices.Concat(a.of.AllOf, b.of.AllOf)
	v.Properties = maps.Clone(b.of.Properties)
	if v.Properties == nil {
		v.Properties = make(openapi3.Schemas)
	}
	for name, p := range a.of.Properties {
		if other := v.Properties[name]; other != nil && other != p {
			p = &openapi3.SchemaRef{Value: &openapi3.Schema{AllOf: openapi3.SchemaRefs{p, other}}, Origin: SchemaOrigin(other)}
		}
		v.Properties[name] = p
	}
	for _, value := range a.of.Enum {
		if !slices.Contains(v.Enum, value) {
			v.Enum = append(slices.Clip(v.Enum), value)
		}
	}
	switch {
	case a.of.Items != nil && b.of.Items != nil:
		v.Items = &openapi3.SchemaRef{Value: &openapi3.Schema{AllOf: openapi3.SchemaRefs{a.of.Items, b.of.Items}}}
	case a.of.Items != nil:
		v.Items = a.of.Items
	}
	if v.Format == "" {
		v.Format = a.of.Format
	}
	if a.of.Type != nil {
		v.Type = a.of.Type
	}
	out.raw = out.raw || b.of.Type != nil && a.of.Type != nil && TypeOf(a.of) != TypeOf(b.of)
	return out
}

// worded returns a shape with the words of another.
func worded(s, words shape, null bool) shape {
	v := *s.of
	s.of, s.null, s.nothing = &v, null, false
	describe(&v, words.of)
	if s.ref == "" {
		v.Extensions = merged(words.extensions(), v.Extensions)
	} else {
		s.beside = merged(words.extensions(), s.beside)
	}
	return s
}

func describe(v, words *openapi3.Schema) {
	if words.Description != "" {
		v.Description = words.Description
	}
	if words.ExternalDocs != nil {
		v.ExternalDocs = words.ExternalDocs
	}
	if words.Example != nil || len(words.Examples) > 0 {
		v.Example, v.Examples = words.Example, words.Examples
	}
}
