package main

import (
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// clientTypesCode is the types of what the operations of the paths send and
// answer. The client itself is written by hand.
func (s *spec) clientTypesCode() (string, error) {
	client := s.clientSchemas()
	return s.declarations(func(schema *openapi3.Schema) bool {
		return !isHandWritten(schema) && client[schema]
	})
}

// clientSchemas are the components that only operations need, not events.
func (s *spec) clientSchemas() map[*openapi3.Schema]bool {
	client, events := s.reachable(s.operations()), s.reachable(s.posts())
	for schema := range events {
		delete(client, schema)
	}
	return client
}

// reachable are the components that operations refer to, and what those refer
// to.
func (s *spec) reachable(operations []*openapi3.Operation) map[*openapi3.Schema]bool {
	out := make(map[*openapi3.Schema]bool)
	var walk func(ref *openapi3.SchemaRef)
	walk = func(ref *openapi3.SchemaRef) {
		schema := ref.Value
		if ref.Ref != "" {
			schema = s.schemas()[schemaName(ref.Ref)].Value // ref.Value may be a copy
		}
		if out[schema] {
			return
		}
		out[schema] = true
		for _, inner := range slices.Concat(unionOf(schema), schema.AllOf) {
			walk(inner)
		}
		if schema.Items != nil {
			walk(schema.Items)
		}
		for _, property := range schema.Properties {
			walk(property)
		}
	}
	for _, operation := range operations {
		for _, ref := range schemasOf(operation) {
			walk(ref)
		}
	}
	return out
}

// operations lists what is under paths, in the order of the spec.
func (s *spec) operations() []*openapi3.Operation {
	var out []*openapi3.Operation
	paths := s.doc.Paths.Map()
	for _, path := range inOrder(paths, itemOrigin) {
		byMethod := paths[path].Operations()
		for _, method := range inOrder(byMethod, operationOrigin) {
			out = append(out, byMethod[method])
		}
	}
	return out
}

// posts lists the operations of the webhooks, in the order of the spec.
func (s *spec) posts() []*openapi3.Operation {
	var out []*openapi3.Operation
	for _, name := range inOrder(s.doc.Webhooks, itemOrigin) {
		out = append(out, s.doc.Webhooks[name].Post)
	}
	return out
}

// schemasOf are the schemas of the JSON that an operation takes and answers.
func schemasOf(o *openapi3.Operation) []*openapi3.SchemaRef {
	var out []*openapi3.SchemaRef
	if body := bodySchema(o); body != nil {
		out = append(out, body)
	}
	answers := o.Responses.Map()
	for _, status := range slices.Sorted(keysOf(answers)) {
		if media := answers[status].Value.Content["application/json"]; media != nil && media.Schema != nil {
			out = append(out, media.Schema)
		}
	}
	return out
}

func operationOrigin(o *openapi3.Operation) *openapi3.Origin { return o.Origin }
