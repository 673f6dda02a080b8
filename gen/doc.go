// Gen makes the Go code of a provider's package from its spec, an OpenAPI 3.1
// document with webhooks that are the provider's event types.
//
// Refresh both providers after changing a spec:
//
//	go generate ./...
//
// which runs, in each provider's package:
//
//	go run ../gen -spec ../spec/asaas.yaml -package .
//
// # The generated files
//
// types.gen.go has the structs and enums of the schemas, which oapi-codegen reads,
// used as a library. events.gen.go has the event types, one struct for each
// schema of an event, and one On… method for each webhook and for each family: the webhooks,
// two or more, whose bodies have one schema. It also has the parts that
// are the same for every provider: the interface Event, UnknownEvent, and the methods of
// Dispatcher that use the package's EventType. provider.gen.go names, verifies and
// decodes events by the settings in x-provider. Names that are listed there as reserved
// are written by hand in the package, and left out.
//
//	webhooks:
//	  PAYMENT_RECEIVED:                                # EventPaymentReceived, OnPaymentReceived
//	    post:
//	      summary: The money of a charge is available. # starts their comments
//	      externalDocs: {url: https://…}               # ends the method's comment
//	      x-entity-key: payment.id                     # Event.Key: the lane of the charge
//	      requestBody: {$ref: …/PaymentEvent}          # the method's handler takes it
//
// Settings that all webhooks with one schema share, such as externalDocs and
// x-entity-key, may be written once, in the schema. A webhook with x-event: false is no
// event: gen makes the types of its request and its response, and nothing else.
//
// A field that is required and cannot be null has its plain type, every other
// field is an value.Optional. Fields keep the order of the spec.
//
// x-essential, in the schema of an event, lists the paths to the fields without which
// the event makes no sense, such as payment.id and payment.value; of a list of paths one
// is enough. An event that lacks one is not handled. An event that lacks another
// required field is handled, with a zero and a finding of drift. A required
// amount is never a zero that was not sent: it is an value.Optional, unless it is
// essential for every event with its schema, at each place of the schema.
//
// A text with x-personal: true, or of the format password, is not printed: structs
// with such a field have methods Format and LogValue, and so have structs that hold them.
// Of JSON whose fields no schema names, the number of fields is printed. A type with x-go-type
// whose schema allows additionalProperties needs a method redacted() that returns the
// value to print.
//
// paths are operations of the provider's API. client_calls.gen.go has a method of
// Client for each, named after its operationId. client_types.gen.go has the types of
// their requests and responses that no event has. The exported methods, and the one that
// sends, are written by hand.
//
// Package fixtures makes the bodies for tests, fixtures.gen.json.
//
// # Parts for other languages
//
// The specs are written for the generators of other languages, too. Two forms would
// become types of their own in Go; gen removes them in memory:
//
//	schema: {allOf: [{$ref: …/PaymentEvent}, {properties: {event: {const: PAYMENT_RECEIVED}}}]}
//	anyOf: [{type: string, enum: [PENDING, RECEIVED]}, {type: string}]
//
// The first is a body that has the name of its own webhook, and its aliases; the
// second an enum that has more values than are known.
//
// # Add an event type
//
// Add its entry under webhooks. If it is about something new, add the schema
// of its event (allOf the Envelope, and the object) and the object's schemas.
// x-entity-key is the path to the id of the event's entity. Of a list of
// paths the first that is not empty counts, and "" means that there is no entity.
// x-aliases are other names of the event type. x-example has the values, by
// their paths, that distinguish it from other events of its schema.
//
// # A whole package
//
// From another module, of a spec with the paths of an event's id, type and time in x-provider, and the way
// deliveries are verified:
//
//	go run github.com/paghooks/paghooks/gen@VERSION -spec shop.yaml -package shop
//
// makes the package shop, on top of package idem/provider, and shop/shoptest.
// docs/provider.md is the guide, examples/provider an example.
//
// # oapi-codegen
//
// oapi-codegen reads the schemas, resolves their references and finds their Go
// types. Its own templates for models are not used: they have pointers for optional
// fields, which cannot tell null from absent, and an import of its runtime. Two
// of its templates are replaced by nothing and one by ours. Its functions
// are added to codegen.TemplateFunctions, a global table. A new release of
// oapi-codegen can break this: its version is pinned in go.mod, and the golden files of
// testdata/good show the changes of a new one. Its receivers of webhooks have one
// handler and one URL per event type; providers post all their events to one URL.
//
// # Ordinary documents
//
// An object or enum that is defined inline is named after its owner and its
// property, OrderStatus for example. The schemas of an allOf are merged. A component that
// is a scalar, or an object without known properties, is inlined where it is used. A
// component with a name that is not valid in Go gets a valid one, and a component that is only
// a reference to another is that other. Everything under paths is left out, with the
// schemas that no webhook needs, unless Client is among the reserved names. A value
// without a type in Go (a union, a value of any type, an object without known
// properties) is a json.RawMessage, which keeps the JSON that was sent. An object that
// contains itself holds a pointer. Without a schema Envelope, x-provider names the property that names the event:
//
//	x-provider: {event: {type: event}}
//
// Numbers, dates and times are types of package value, never floats: see there.
// A provider's package can have types of its own instead:
//
//	x-go-formats:
//	  string/asaas-date: {go: Date, example: "2026-08-08"}
//	  integer: {go: Int}
//
// amount marks money, and number a text that may be sent as a number. Such a type
// is written by hand in the package, and so is a schema with x-go-type.
// spec/extensions.json is the JSON schema of these extensions.
//
// A missing description or link is a warning. A format that is nearly a known one is a
// mistake: an amount would become a number. A spec that breaks a rule is refused, and
// nothing is written. Its mistakes in references are printed first, then those in
// extensions, then those in their values. spec/testdata/bad has an example of each
// rule, spec/testdata/ordinary has documents that are accepted.
//
// # Keep the spec true
//
// Compare it with bodies that were delivered, and with the provider's own OpenAPI document:
//
//	go run github.com/paghooks/paghooks/gen drift -spec spec/asaas.yaml saved/*.json
//	go run github.com/paghooks/paghooks/gen upstream -spec spec/asaas.yaml document.json .
//
// The first prints the parts of the bodies that the spec does not know. The second writes
// the spec and the document in one form, for oasdiff to compare, as the workflow
// upstream.yml does weekly. See packages drift and upstream.
//
// # Change the generator
//
// The golden files of testdata/good show the effect of a change on the output:
//
//	go test ./gen ./gen/spec ./gen/drift -update && git diff gen
package main
