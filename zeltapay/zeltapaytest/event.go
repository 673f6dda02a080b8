package zeltapaytest

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
)

//go:embed fixtures.gen.json
var generated []byte

var fixtures = sync.OnceValue(func() *fixture.File {
	f, err := fixture.Read(generated)
	if err != nil {
		panic("zeltapaytest: " + err.Error())
	}
	return f
})

// Layout is one of the two shapes of a payment.success. Other event types have
// one shape, whatever the layout.
type Layout string

const (
	Flat   Layout = "flat"   // the reference pages, in English: paymentLinkId, transaction.amount
	Nested Layout = "nested" // the guides, in Spanish: paymentLink.id, paymentLink.amount
)

// Event makes the body of an event in which every field has a value, and then
// changes it. The event has an id of its own, unless it is set.
//
// It panics for an event type that package zeltapay does not know, and for a
// change that is a mistake. To make one that is newer, Set "type".
func Event(eventType zeltapay.EventType, changes ...Change) []byte {
	return Flat.Event(eventType, changes...)
}

// Sparse is [Event] with as little in it as Zelta Pay may send: an id, the
// type, and some other fields as null.
func Sparse(eventType zeltapay.EventType, changes ...Change) []byte {
	return Flat.Sparse(eventType, changes...)
}

// Event is the function [Event] in this layout.
func (l Layout) Event(eventType zeltapay.EventType, changes ...Change) []byte {
	return made(fixtures().Full(string(l), string(eventType), withID(changes)...))
}

// Sparse is the function [Sparse] in this layout.
func (l Layout) Sparse(eventType zeltapay.EventType, changes ...Change) []byte {
	return made(fixtures().Sparse(string(l), string(eventType), withID(changes)...))
}

func made(body []byte, err error) []byte {
	if err != nil {
		panic("zeltapaytest: " + err.Error())
	}
	return body
}

// withID sets what names an event, before the changes that the test wants.
func withID(changes []Change) []Change {
	return append([]Change{Set("eventId", newID())}, changes...)
}

func newID() string { return fmt.Sprintf("evt_%016x", fixture.Number()) }

// Types lists the event types that there are bodies of: all that package
// zeltapay knows.
func Types() []zeltapay.EventType {
	var out []zeltapay.EventType
	for _, name := range fixtures().Types() {
		out = append(out, zeltapay.EventType(name))
	}
	return out
}
