package asaastest

import (
	"crypto/md5"
	_ "embed"
	"fmt"
	"sync"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/fixture"
)

//go:embed fixtures.gen.json
var generated []byte

var fixtures = sync.OnceValue(func() *fixture.File {
	f, err := fixture.Read(generated)
	if err != nil {
		panic("asaastest: " + err.Error())
	}
	return f
})

// Event makes the body of an event in which every field has a value, and then
// changes it. The event has an id of its own, unless it is set: "evt_", the
// hash of its type, "&" and a number, like Asaas's.
//
// It panics for an event type that package asaas does not know, and for a
// change that is a mistake. To make one that is newer, Set "event".
func Event(eventType asaas.EventType, changes ...Change) []byte {
	return made(fixtures().Full("", string(eventType), withID(eventType, changes)...))
}

// Sparse is [Event] with as little in it as Asaas may send: the fields that are
// always there, and some of the others as null.
func Sparse(eventType asaas.EventType, changes ...Change) []byte {
	return made(fixtures().Sparse("", string(eventType), withID(eventType, changes)...))
}

func made(body []byte, err error) []byte {
	if err != nil {
		panic("asaastest: " + err.Error())
	}
	return body
}

// withID sets what names an event, before the changes that the test wants.
func withID(eventType asaas.EventType, changes []Change) []Change {
	id := fmt.Sprintf("evt_%x&%d", md5.Sum([]byte(eventType)), fixture.Number())
	return append([]Change{Set("id", id), Set("event", eventType)}, changes...)
}

// Types lists the event types that there are bodies of: all that package asaas
// knows, family by family.
func Types() []asaas.EventType {
	var out []asaas.EventType
	for _, name := range fixtures().Types() {
		out = append(out, asaas.EventType(name))
	}
	return out
}
