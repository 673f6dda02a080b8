package main

import (
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/gen/spec"
)

// clientTypesCode is the types of what the operations of the paths send and
// answer.
func (p provider) clientTypesCode() (string, error) {
	client := p.clientSchemas()
	return p.declarations(func(schema *openapi3.Schema) bool {
		return !spec.IsHandWritten(schema) && client[schema]
	})
}

// clientSchemas are the components that only operations need, not events.
func (p provider) clientSchemas() map[*openapi3.Schema]bool {
	client, events := p.reachable(p.Operations()), p.reachable(p.Posts())
	for schema := range events {
		delete(client, schema)
	}
	return client
}

// reachable are the components that operations refer to, and what those refer
// to.
func (p provider) reachable(operations []spec.Operation) map[*openapi3.Schema]bool {
	out := make(map[*openapi3.Schema]bool)
	var walk func(ref *openapi3.SchemaRef)
	walk = func(ref *openapi3.SchemaRef) {
		schema := ref.Value
		if ref.Ref != "" {
			schema = p.Schemas()[spec.SchemaName(ref.Ref)].Value // ref.Value may be a copy
		}
		if out[schema] {
			return
		}
		out[schema] = true
		for _, inner := range slices.Concat(spec.UnionOf(schema), schema.AllOf) {
			walk(inner)
		}
		if schema.Items != nil {
			walk(schema.Items)
		}
		for _, property := range schema.Properties {
			walk(property)
		}
	}
	for _, o := range operations {
		for _, ref := range o.Schemas() {
			walk(ref)
		}
	}
	return out
}
