// Package drift compares bodies that were delivered with a spec, one in each file
// or one on each line of it.
//
//	go run github.com/paghooks/paghooks/gen drift -spec shop.yaml -overlay new.yaml saved/*.json
//
// It prints the event types, fields, values and types that the spec does not know,
// without values. new.yaml is an OpenAPI Overlay 1.0.0 that adds the fields that
// need no guess about their meaning; the table lists the rest, to be done by hand.
// Read it, write descriptions and links, and copy it into the spec; or, until then,
// apply it:
//
//	go run github.com/paghooks/paghooks/gen -spec shop.yaml -overlay new.yaml -package shop
//	go run github.com/paghooks/paghooks/gen drift -spec shop.yaml -with new.yaml saved/*.json # nothing, now
//
// Types are guessed from the values that were seen, among those that the spec already
// uses. An object becomes a reference to a component that it fits, otherwise a component
// named after its field. A field that was null may then be null, and a field that was
// missing is no longer required. Three cases are left to be done by hand: a schema that
// the spec defines inline, a field that changed its type, and a field that was always
// null or empty.
package drift
