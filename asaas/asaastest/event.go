package asaastest

import (
	"context"
	"crypto/md5"
	"fmt"
	"net/http"

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
	return append([]Change{Set("id", newID(eventType)), Set("event", eventType)}, changes...)
}

func newID(eventType asaas.EventType) string {
	return fmt.Sprintf("evt_%x&%d", md5.Sum([]byte(eventType)), fixture.Number())
}

// Request makes the POST that delivers a body, with the webhook's token. It is
// good for a handler's ServeHTTP, where the URL may be a path alone, and for
// [http.Client.Do]. It comes from an address of Asaas's.
//
// A request is sent once: make another one to deliver the body again. It panics
// for a URL that is none.
func Request(url, token string, body []byte) *http.Request {
	r, err := fixture.NewRequest(context.Background(), url, body, "Content-Type", "application/json", asaas.TokenHeader, token)
	if err != nil {
		panic("asaastest: " + err.Error())
	}
	r.RemoteAddr = asaas.OfficialAddresses()[0].Addr().String() + ":40000"
	return r
}
