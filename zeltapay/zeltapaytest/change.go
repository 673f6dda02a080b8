package zeltapaytest

import "github.com/paghooks/paghooks/internal/fixture"

// Change is something that a test wants different in a body: a [Set], an [Add]
// or a [Delete]. Changes are made in their order.
type Change = fixture.Change

// Set gives a field another value, encoded as encoding/json does. nil is null.
//
// The path names the field as the JSON does, with dots: "transaction.amount".
// Metadata may have any name. Objects that are missing on the way are made.
//
// It panics for a field that events of the type do not have in the layout, and
// for a value of another kind than the field's (a string, a number, a boolean,
// an object or an array). An [encoding/json.RawMessage] may be of any kind.
func Set(path string, value any) Change { return fixture.Set(path, value) }

// Add adds a field that this module does not know yet, to test what your code
// does with it. It panics for a field that it knows, which is for [Set].
func Add(path string, value any) Change { return fixture.Add(path, value) }

// Delete leaves a field out, see [Set] for its path. It panics for a field that
// events of the type do not have in the layout.
func Delete(path string) Change { return fixture.Delete(path) }
