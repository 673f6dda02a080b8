// Package upstream compares a spec with the provider's own OpenAPI document. Asaas's
// has no webhook bodies, but the names of the events, and the objects that events
// carry.
//
//	go run github.com/paghooks/paghooks/gen upstream -spec spec/asaas.yaml
//
// It prints the parts of the document that are new, gone, or of another type, one line each.
// The spec says where the document is, and the names that differ there:
//
//	x-upstream:
//	  document: https://example.com/openapi.json
//	  events: WebhookConfig.events  # a list of their names; default: the document's webhooks
//	  schemas: {Order: OrderDTO}    # default: those of the same name
//
// A part that is delivered without being in the document is marked in the spec, and is
// reported once it is in it: x-undocumented is true in a webhook or a property,
// and in an enum the list of its values that are not there. Beside a $ref it
// marks the property.
package upstream
