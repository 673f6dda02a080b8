package main

import (
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/gen/spec"
)

// clientTypesCode returns the types of the bodies that the operations of the paths send and
// answer.
func (p provider) clientTypesCode() (string, error) {
	client := p.clientSchemas()
	return p.declarations(func(schema *openapi3.Schema) bool {
		return !spec.IsHandWritten(schema) && client[schema]
	})
}

// clientSchemas are the components that only operations need, not events.
func (p provider) clientSchemas() map[*openapi3.Schema]bool {
	client, events := p.Reachable(p.Operations()), p.Reachable(p.Posts())
	for schema := range events {
		delete(client, schema)
	}
	return client
}
