package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	schemaPrefix   = "#/components/schemas/"
	envelopeSchema = "Envelope"
	eventTypeName  = "EventType"

	goTypeExtension   = "x-go-type"           // a schema whose Go type is written by hand
	enumDocsExtension = "x-enum-descriptions" // value of an enum: its description
	entityKeyName     = "x-entity-key"        // path, or paths, to the id of what an event is about
	layoutExtension   = "x-layout"            // the one layout of a body that has a property
	aliasesName       = "x-aliases"           // list of other names that an event type comes by
	exampleName       = "x-example"           // path: a value that an event of this type has, and others of its family have not
)

// isEvent tells whether a schema is that of an event: the envelope, and more.
func isEvent(s *openapi3.Schema) bool {
	return slices.ContainsFunc(s.AllOf, func(r *openapi3.SchemaRef) bool {
		return r.Ref == schemaPrefix+envelopeSchema
	})
}

func isHandWritten(s *openapi3.Schema) bool {
	_, ok := s.Extensions[goTypeExtension]
	return ok
}

func isNull(r *openapi3.SchemaRef) bool {
	return r.Ref == "" && r.Value != nil && slices.Equal(r.Value.Type.Slice(), []string{"null"})
}

func isReference(r *openapi3.SchemaRef) bool { return r.Ref != "" }

// withoutNull returns what a property is when it is not null, and whether it
// can be null. "oneOf: [$ref, null]" is the only union there is.
func withoutNull(r *openapi3.SchemaRef) (plain *openapi3.SchemaRef, nullable bool) {
	if r.Ref != "" || r.Value == nil {
		return r, false
	}
	if union := unionOf(r.Value); len(union) == 2 && slices.ContainsFunc(union, isNull) {
		if i := slices.IndexFunc(union, isReference); i >= 0 {
			return union[i], true
		}
	}
	return r, slices.Contains(r.Value.Type.Slice(), "null")
}

func unionOf(s *openapi3.Schema) openapi3.SchemaRefs {
	return slices.Concat(s.OneOf, s.AnyOf)
}

// typeOf is a schema's type, apart from null; "" unless there is exactly one.
func typeOf(s *openapi3.Schema) string {
	types := slices.DeleteFunc(slices.Clone(s.Type.Slice()), func(t string) bool { return t == "null" })
	if len(types) != 1 {
		return ""
	}
	return types[0]
}

func schemaName(ref string) string { return strings.TrimPrefix(ref, schemaPrefix) }
