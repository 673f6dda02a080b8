package asaastest

import (
	"crypto/md5"
	"fmt"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Event makes the body of an event in which every field has a value, and then
// changes it. The event has an id of its own, unless it is set: "evt_", the
// hash of its type, "&" and a number, like Asaas's.
//
// It panics for an event type that package asaas does not know, and for a
// change that is a mistake. To make one that is newer, Set "event".
func Event(eventType asaas.EventType, changes ...Change) []byte {
	return bodies.Event(string(eventType), withID(eventType, changes)...)
}

// Sparse is [Event] with as little in it as Asaas may send: the fields that are
// always there, and some of the others as null.
func Sparse(eventType asaas.EventType, changes ...Change) []byte {
	return bodies.Sparse(string(eventType), withID(eventType, changes)...)
}

// withID sets the fields that name an event, before the changes that the test wants.
func withID(eventType asaas.EventType, changes []Change) []Change {
	id := fmt.Sprintf("evt_%x&%d", md5.Sum([]byte(eventType)), fixture.Number())
	return append([]Change{Set("id", id), Set("event", eventType)}, changes...)
}
