// Package drift compares bodies that were delivered with a spec, one in each file
// or one on each line of it.
//
//	go run github.com/paghooks/paghooks/gen drift -spec shop.yaml -overlay new.yaml saved/*.json
//
// It prints the event types, fields, values and types that the spec does not know,
// without values. new.yaml is an OpenAPI Overlay 1.0.0 that adds all fields that can be added
// without a guess about its meaning; the table lists the rest, to be done by hand.
// Read it, write descriptions and links, and copy it into the spec; or, until then,
// apply it:
//
//	go run github.com/paghooks/paghooks/gen -spec shop.yaml -overlay new.yaml -package shop
//	go run github.com/paghooks/paghooks/gen drift -spec shop.yaml -with new.yaml saved/*.json # nothing, now
//
// Types are guessed from the values that were seen, of those that the spec uses already. An
// object becomes a reference to a component that it fits, or else a component
// named after its field. A schema that the spec defines inline is left to be done by hand. A field that was null may be null, and one that was
// missing is not required any more. A field that became another type, and one that was only
// ever null or empty, is left.
package drift
