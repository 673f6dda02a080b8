package spec

import (
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// or returns the shape of a value that is one of a union.
func (n *normal) or(union openapi3.SchemaRefs, join bool, seen []string) shape {
	null := false
	var some []shape
	for _, ref := range union {
		one := n.flat(ref, seen...)
		if null = null || one.null; !one.nothing && !slices.ContainsFunc(some, func(s shape) bool { return s.ref != "" && s.ref == one.ref }) {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		return shape{of: &openapi3.Schema{}, null: true, nothing: true}
	}
	out := some[0]
	var kinds []string
	ext := make(map[string]any)
	for _, s := range some {
		ext = merged(ext, s.extensions())
		kinds = append(kinds, kindIn(s))
	}
	kinds = slices.Compact(slices.Sorted(slices.Values(kinds)))
	switch {
	case len(some) == 1:
		out.null = null
		return out
	case slices.Equal(kinds, []string{"string"}):
		out = texts(some)
	case len(kinds) == 1 && slices.Contains([]string{"integer", "number", "boolean"}, kinds[0]):
		out = scalarOf(kinds[0], "")
	case isTextOrNumber(kinds):
		out = scalarOf("string", "text")
	case slices.Equal(kinds, []string{"integer", "number"}):
		out = scalarOf("number", "")
	case slices.Equal(kinds, []string{"object"}) && (join || n.tellApart(some)):
		out = joined(some)
	default:
		out = shape{of: &openapi3.Schema{}, raw: true}
	}
	if out.ref == "" {
		out.of.Extensions = merged(out.of.Extensions, ext)
	}
	out.null = null
	return out
}

func scalarOf(kind, format string) shape {
	return shape{of: &openapi3.Schema{Type: &openapi3.Types{kind}, Format: format}}
}

func kindIn(s shape) string {
	if IsHandWritten(s.of) || s.raw && TypeOf(s.of) != "object" && (len(s.of.Type.Slice()) > 0 || s.of.Items != nil) {
		return "other"
	}
	if len(s.of.Properties) > 0 || len(s.of.Required) > 0 || IsEvent(s.of) {
		return "object"
	}
	if TypeOf(s.of) == "object" {
		return "other" // of any properties
	}
	return TypeOf(s.of)
}

// texts is the shape of a text that is one of several. Any text makes an enum of them open.
func texts(some []shape) shape {
	named := slices.DeleteFunc(slices.Clone(some), func(s shape) bool { return len(s.of.Enum) == 0 })
	if len(named) == 0 {
		out := scalarOf("string", some[0].of.Format)
		if slices.ContainsFunc(some, func(s shape) bool { return s.of.Format != out.of.Format }) {
			out.of.Format = ""
		}
		return out
	}
	out := named[0]
	v := *out.of
	for _, s := range named[1:] {
		v.Enum = append(slices.Clip(v.Enum), slices.DeleteFunc(slices.Clone(s.of.Enum), func(value any) bool { return slices.Contains(v.Enum, value) })...)
		out.ref, out.beside = "", nil
	}
	if out.of = &v; len(named) < len(some) {
		v.Extensions = merged(map[string]any{openEnumName: true}, v.Extensions)
	}
	return out
}

// tellApart reports whether objects have a property whose text tells them apart.
func (n *normal) tellApart(some []shape) bool {
	for name := range some[0].of.Properties {
		if !slices.ContainsFunc(some, func(s shape) bool {
			p := s.of.Properties[name]
			return p == nil || len(n.flat(p).of.Enum) == 0
		}) {
			return true
		}
	}
	return false
}

// joined is one object that has the properties of all.
func joined(some []shape) shape {
	v := openapi3.Schema{Type: &openapi3.Types{"object"}, Properties: make(openapi3.Schemas), Required: some[0].of.Required, AllOf: some[0].of.AllOf}
	of := make(map[string]openapi3.SchemaRefs)
	for _, s := range some {
		v.Required = slices.DeleteFunc(slices.Clone(v.Required), func(name string) bool { return !slices.Contains(s.of.Required, name) })
		for name, p := range s.of.Properties {
			if !slices.ContainsFunc(of[name], func(other *openapi3.SchemaRef) bool { return other == p || p.Ref != "" && p.Ref == other.Ref }) {
				of[name] = append(of[name], p)
			}
		}
	}
	for name, refs := range of {
		v.Properties[name] = refs[0]
		if len(refs) > 1 {
			v.Properties[name] = &openapi3.SchemaRef{Value: &openapi3.Schema{AnyOf: refs, Extensions: map[string]any{joinName: true}}, Origin: SchemaOrigin(refs[0])}
		}
	}
	return shape{of: &v}
}

func isTextOrNumber(kinds []string) bool {
	return len(kinds) > 1 && slices.Contains(kinds, "string") && !slices.ContainsFunc(kinds, func(k string) bool {
		return k != "string" && k != "integer" && k != "number"
	})
}

// mapped are the schemas of a discriminator that has no union: each has an allOf of the schema that has it.
func (n *normal) mapped(of *openapi3.Schema, seen []string) (union openapi3.SchemaRefs) {
	if of.Discriminator == nil || len(UnionOf(of)) > 0 {
		return nil
	}
	for _, value := range slices.Sorted(maps.Keys(of.Discriminator.Mapping)) {
		target := of.Discriminator.Mapping[value]
		name := SchemaName(target.Ref)
		if slices.Contains(seen, name) {
			return nil // this is one of them
		}
		if n.from[name] != nil {
			union = append(union, &openapi3.SchemaRef{Ref: SchemaPrefix + name})
		}
	}
	return union
}
