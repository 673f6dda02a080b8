// Gen makes the Go code of a provider's package from its spec, an OpenAPI 3.1
// document whose webhooks are the provider's event types.
//
// Refresh both providers after changing a spec:
//
//	go generate ./...
//
// which runs, in each provider's package:
//
//	go run ../gen -spec ../spec/asaas.yaml -package .
//
// # What becomes what
//
// oapi-codegen, used as a library, reads the schemas; types.gen.go has their
// structs and enums. events.gen.go has the event types, one struct for each
// schema of an event, and one On… method for each webhook. It also has what is the
// same for every provider: the interface Event, UnknownEvent, and the methods of
// Dispatcher that know the package's EventType. provider.gen.go names events,
// verifies and decodes them, as x-provider says; what its reserved names is written
// by hand in the package, and left out.
//
//	webhooks:
//	  PAYMENT_RECEIVED:                                # EventPaymentReceived, OnPaymentReceived
//	    post:
//	      summary: The money of a charge is available. # starts their comments
//	      externalDocs: {url: https://…}               # ends the method's comment
//	      x-entity-key: payment.id                     # Event.Key: the lane of the charge
//	      requestBody: {$ref: …/PaymentEvent}          # the method's handler takes it
//
// What is the same for all webhooks of an event, externalDocs and x-entity-key among
// it, may stand once, in the event's schema. A webhook with x-event: false is no
// event: types are made of what it posts and is answered, and nothing else.
//
// A field that is required and cannot be null has its plain type, every other
// field is an optional.Value. Fields keep the order of the spec.
//
// x-essential, in the schema of an event, lists the paths to what the event is
// nothing without, such as payment.id and payment.value; of a list of paths one
// is enough. An event that lacks one is not handled. One that lacks anything else
// that is required is handled, with a zero and a finding of drift. A required
// amount is never a zero that nobody sent: it is an optional.Value, unless it is
// essential for every event that has its schema, in every place where it has it.
//
// A text with x-personal: true, or of the format password, is not printed: the structs
// that have one have methods Format and LogValue, and so have those that hold them.
//
// paths are operations of the provider's API. client_calls.gen.go has a method of
// Client for each, named after its operationId; client_types.gen.go what they
// send and answer, and no event has. The exported methods, and the one that
// sends, are written by hand.
//
// The bodies for tests, fixtures.gen.json, are what package fixtures makes.
//
// # What is for other languages
//
// The specs are made for the generators of other languages as well. For Go, gen
// takes out in memory what would become types of their own there:
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
// x-entity-key is the path to the id of what the event is about; a list of
// paths means the first that is not empty, and "" that it is about nothing.
// Other names that the event type comes by are its x-aliases: they take the
// same way. x-example has the values that tell it from others of its family, by
// their path. x-essential of the schema lists the paths of what the event is
// nothing without.
//
// # A whole package
//
// From another module, of a spec whose x-provider says where an event's id, type and
// time stand and how deliveries are verified:
//
//	go run github.com/paghooks/paghooks/gen@VERSION -spec shop.yaml -package shop
//
// makes the package shop, on top of package idem/provider, and shop/shoptest.
// docs/provider.md is the guide, examples/provider an example.
//
// # oapi-codegen
//
// oapi-codegen reads the schemas, resolves what they refer to and finds their Go
// types. Its own templates for models are not used: they have pointers for what may
// be missing, which cannot tell null from absent, and an import of its runtime. Two
// of the three templates that are replaced are replaced by nothing, and functions
// for ours are added to codegen.TemplateFunctions, the one table that it has for
// that, which is global. A new release of oapi-codegen can break this: its version
// is pinned in go.mod, and the golden files of testdata/good show what a new one
// changes. Its receivers of webhooks are one handler and one URL per event type;
// providers post all their events to one.
//
// # What an ordinary document may have
//
// Objects and enums that are defined inline get the name of their property behind
// that of their owner, OrderStatus for example. What several schemas are all of is
// merged. A component that is a scalar, or an object of which no property is known,
// stands where it is used; one whose name is none in Go gets one, and one that is
// another's name is that. What is under paths is left out, with all that the webhooks
// do not need, unless Client is among the reserved names. What Go has no type
// for (a union, a value of any type, an object of which no property is known) is a
// json.RawMessage, which keeps what was sent. An object that holds itself holds a
// pointer. Without a schema Envelope, x-provider says which property names the event:
//
//	x-provider: {event: {type: event}}
//
// Numbers, dates and times are types of package scalar, never floats: see there.
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
// What the code can do without, a description or a link, is a warning. A format that
// is nearly a known one is a mistake: an amount would become a number. A spec that
// breaks a rule is refused with its mistakes, all of references first, then all of
// extensions, then all of what they say, and nothing is written;
// spec/testdata/bad has an example of each rule, spec/testdata/ordinary of what is
// taken.
//
// # Keep the spec true
//
// Compare it with the provider's own OpenAPI document, and with bodies that were
// delivered:
//
//	go run github.com/paghooks/paghooks/gen upstream -spec spec/asaas.yaml
//	go run github.com/paghooks/paghooks/gen drift -spec spec/asaas.yaml -overlay new.yaml saved/*.json
//
// Packages upstream and drift tell what they look at and propose. The exit status
// is 0 without differences, 1 with some, 2 where nothing could be compared. go run
// makes 1 of both and prints the status: a script that has to tell them apart runs
// what go build -o FILE github.com/paghooks/paghooks/gen makes.
//
// # Change the generator
//
// See in testdata/good what your change does to the output:
//
//	go test ./gen ./gen/spec ./gen/drift -update && git diff gen
package main
