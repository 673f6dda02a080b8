// Gen makes the Go code of a provider's package from an OpenAPI document, 3.0 or 3.1, with webhooks
// that are the provider's event types, and from overlays of it:
//
//	go run github.com/paghooks/paghooks/gen@VERSION -spec acme.yaml -overlay acme.overlay.yaml -package acme
//
// docs/provider.md is the guide, docs/overlay.md the reference to the extensions, examples/provider an example, and
// spec/extensions.json the JSON schema. Our own providers are made by go generate ./... in the same way.
//
// # The generated files
//
// types.gen.go has the structs and enums of the schemas, which oapi-codegen reads,
// used as a library. events.gen.go has the event types, one struct for each
// schema of an event, and one On… method for each webhook and for each family: the webhooks,
// two or more, whose bodies have one schema. provider.gen.go names, verifies and
// decodes events by the settings in x-provider. Names that are listed there as reserved
// are written by hand in the package, and left out. The package of tests beside it has bodies,
// which package fixtures makes.
//
//	webhooks:
//	  PAYMENT_RECEIVED:                                # EventPaymentReceived, OnPaymentReceived
//	    post:
//	      summary: The money of a charge is available. # starts their comments
//	      externalDocs: {url: https://…}               # ends the method's comment
//	      x-entity-key: payment.id                     # Event.Key: the lane of the charge
//	      requestBody: {$ref: …/PaymentEvent}          # the method's handler takes it
//
// A field that is required and cannot be null has its plain type, every other
// field is a value.Optional. Fields keep the order of the document.
//
// x-essential, in the schema of an event, lists the paths to the fields without which
// the event makes no sense; of a list of paths one is enough. An event that lacks one is not handled. An event
// that lacks another required field is handled, with a zero and a finding of drift. A required
// amount is never a zero that was not sent: it is a value.Optional, unless it is
// essential for every event with its schema, at each place of the schema.
//
// A struct with a personal field, however deep, is printed and logged as JSON without it: see
// provider.Personal.
//
// paths are operations of the provider's API, if Client is among the reserved names: client_types.gen.go has their
// types that no event has.
//
// # From a document to Go
//
// Objects and enums that are defined inline are named after their owner and their property, OrderStatus for
// example. An allOf is one object with the fields of all, and so is a union of objects that is a part of one, or that a
// property tells apart.
// A const is an enum of one value. An enum, or any text, is an enum that may have newer values. null
// makes a field optional. A value without a type in Go (another union, a value of any type, an object without
// known properties, a list with null in it) is a json.RawMessage. An object that contains
// itself holds a pointer. An object with additionalProperties beside its properties is refused, unless x-go-type has
// it kept as JSON or read by hand. Names that clash get the suffix Value; x-go-name gives another. The body of an event
//
//	allOf: [{$ref: …/PaymentEvent}, {properties: {event: {const: PAYMENT_RECEIVED}}}]
//
// is a PaymentEvent, and its const its name. Without a schema Envelope, x-provider says which property names the
// event: {event: {type: event}}.
//
// Numbers, dates and times are types of package value, never floats. A provider's package can have types of its
// own instead, by hand: x-go-formats names them for formats, x-go-type for a schema.
//
//	x-go-formats:
//	  string/asaas-date: {go: Date, example: "2026-08-08"}
//	  integer: {go: Int}
//
// # What is refused
//
// Then a walk over the document as it was written, beside the types, finds each property and each value of an enum
// that no type has, and each extension that did nothing. go/types finds what would not compile. Nothing
// is written until all is right. spec/testdata/bad has an example of each rule, spec/testdata/ordinary
// and testdata/corpus have documents that are accepted.
//
// # Keep the spec true
//
//	go run ./gen drift -spec spec/asaas.yaml saved/*.json
//
// prints the parts of saved bodies that the spec does not know. The workflow upstream.yml reports weekly what
// changed in Asaas's own document.
//
// # oapi-codegen
//
// Its own templates for models are not used: they have pointers for optional
// fields, which cannot tell null from absent, and an import of its runtime. Its functions
// are added to codegen.TemplateFunctions, a global table. A new release of
// oapi-codegen can break this: its version is pinned in gen/go.mod, and the golden files of
// testdata/good show the changes:
//
//	go test ./gen ./gen/spec ./gen/drift -update && git diff gen
package main
