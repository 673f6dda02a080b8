// Package upstream compares a spec with the provider's own OpenAPI document. Asaas's
// document has no bodies of webhooks, only the names of the events and the objects in
// them.
//
//	go run github.com/paghooks/paghooks/gen upstream -spec spec/asaas.yaml
//
// It prints the parts of the document that are new, gone, or of another type, one line each.
// The spec has the document's address, and the names that differ in it:
//
//	x-upstream:
//	  document: https://example.com/openapi.json
//	  events: WebhookConfig.events  # a list of their names; default: the document's webhooks
//	  schemas: {Order: OrderDTO}    # default: those of the same name
//
// If the provider delivers a part that its document lacks, mark that part in the spec with
// x-undocumented: true in a webhook or a property, or in an enum the list of the
// undocumented values. Beside a $ref it marks the property. A marked part is reported
// once the document has it.
package upstream
