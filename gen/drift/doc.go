// Package drift compares bodies that were delivered with a spec, one in each file
// or one on each line of it.
//
//	go run ./gen drift -overlay new.yaml saved/*.json
//
// It prints the event types, fields, values and types that the spec does not know,
// without values. new.yaml is an OpenAPI Overlay 1.0.0 that adds what can be added
// without a guess about its meaning; the table says what is left to do by hand.
// Read it, write descriptions and links, and copy it into the spec; or, until then,
// apply it:
//
//	go run ./gen generate -overlay new.yaml spec/asaas.yaml asaas
//	go run ./gen drift -with new.yaml saved/*.json # nothing, now
//
// Types are guessed from what was seen, of those that the spec uses already. An
// object becomes a reference to a component that it fits, or else a component
// named after its field. A field that was null may be null, and one that was
// missing is not required any more. What became another type, and what was only
// ever null or empty, is left.
package drift
