// Gen makes the Go code of a provider's package from its spec, an OpenAPI 3.1
// document whose webhooks are the provider's event types.
//
// Refresh both providers after changing a spec:
//
//	go generate ./...
//
// which runs, in each provider's package:
//
//	go run ../gen generate ../spec/asaas.yaml .
//
// # What becomes what
//
// oapi-codegen, used as a library, reads the schemas; types.gen.go has their
// structs and enums. events.gen.go has the event types, one struct for each
// schema of an event, and one On… method for each webhook.
//
//	webhooks:
//	  PAYMENT_RECEIVED:                                # EventPaymentReceived, OnPaymentReceived
//	    post:
//	      summary: The money of a charge is available. # starts their comments
//	      externalDocs: {url: https://…}               # ends the method's comment
//	      x-entity-key: payment.id                     # PaymentEvent.key
//	      requestBody: {$ref: …/PaymentEvent}          # the method's handler takes it
//
// A field that is required and cannot be null has its plain type, every other
// field is an optional.Value. Fields keep the order of the spec.
//
// x-essential, in the schema of an event, lists the paths to what the event is
// nothing without, such as payment.id and payment.value; of a list of paths one
// is enough. An event that lacks one is not handled. One that lacks anything else
// that is required is handled, with a zero and a finding of drift; a required
// amount that is not essential is an optional.Value, so that it is never a zero
// that nobody sent.
//
// paths are operations of the provider's API. What they send and answer, and no
// event has, is in client_types.gen.go; the client itself is written by hand.
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
// # Bodies for tests
//
// fixtures.gen.json, in the package of tests beside the provider's
// (asaas/asaastest), has two bodies for each event type. The full one has every
// property, with the first of these values that there is:
//
//  1. the value that x-example of the webhook has for its path
//  2. the value of an enum that the event type is named after, in the object
//     that it is about (PAYMENT_RECEIVED: payment.status is RECEIVED), and
//     likewise true for a boolean (PAYMENT_DELETED: payment.deleted)
//  3. the example of the property, or of its schema
//  4. what type, format, description and name suggest: the first value of an
//     enum; what the description quotes ("pay_" and more); a date in the
//     spelling that the description gives it; an id by what it is the id of
//
// The sparse one has the required properties, the id of what the event is about
// and what it is nothing without; of the other scalars every second is null, and
// the rest is left out. The same spec makes the same bodies: no value depends on
// the clock, on chance, or on the properties beside it.
//
// x-layout names the one layout of a body that has a property, where a provider
// documents several; there are bodies in each.
//
// # Add an event type
//
// Add its entry under webhooks. If it is about something new, add the schema
// of its event (allOf the Envelope, and the object) and the object's schemas.
// x-entity-key is the path to the id of what the event is about; a list of
// paths means the first that is not empty, and "" that it is about nothing.
// Other names that the event type comes by are its x-aliases: they take the
// same way.
//
// # Add a scalar
//
// Formats that have a Go type of their own, money for example, are listed in
// formats.go. Their types are written by hand in the provider's package, and
// so is a schema with x-go-type.
//
// A spec that breaks a rule is refused with all its mistakes at once, and
// nothing is written; testdata/bad has an example of each rule.
//
// # Compare with Asaas's own document
//
// Asaas publishes an OpenAPI document of its API. It has no webhook bodies, but
// the names of the events, and the objects that events carry:
//
//	go run ./gen upstream 'https://www.asaas.com/openApi/document?version=3&languageCode=en-US'
//
// prints what is new there, gone, or of another type, one line each. What is
// delivered without being in that document is marked in the spec, and is told
// once it is in it: x-undocumented is true in a webhook or a property, and in
// an enum the list of its values that are not there. Beside a $ref it marks the
// property. upstream.go has the table of Asaas's names for our schemas.
//
// The exit status is 0 without differences, 1 with some, 2 where nothing could
// be compared. go run makes 1 of both and prints the status: a script that has
// to tell them apart runs what go build -o FILE ./gen makes.
//
// # Keep the spec true
//
// Compare bodies that were delivered with a spec, one in each file or one on
// each line of it:
//
//	go run ./gen drift -overlay new.yaml saved/*.json
//
// prints the event types, fields, values and types that the spec does not know,
// without values, and exits with 1 if there are any. new.yaml is an OpenAPI
// Overlay 1.0.0 that adds what can be added without a guess about its meaning;
// the table tells what is left to do by hand. Read it, write descriptions and
// links, and copy it into the spec; or, until then, apply it:
//
//	go run ./gen generate -overlay new.yaml spec/asaas.yaml asaas
//	go run ./gen drift -with new.yaml saved/*.json # nothing, now
//
// Types are guessed from what was seen, of those that the spec uses already: an
// object becomes a component named after its field, a field that was missing or
// null is not required any more. What became another type, and what was only
// ever null or empty, is left.
//
// # Change the generator
//
// See in testdata/good what your change does to the output:
//
//	go test ./gen -update && git diff gen/testdata
package main
