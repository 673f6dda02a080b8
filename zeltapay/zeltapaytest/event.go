package zeltapaytest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
)

// Layout is one of the two shapes of a payment.success. Other event types have
// one shape for both layouts.
type Layout string

const (
	Flat   Layout = "flat"   // the reference pages, in English: paymentLinkId, transaction.amount
	Nested Layout = "nested" // the guides, in Spanish: paymentLink.id, paymentLink.amount
)

// Event makes the body of an event in which every field has a value, and then
// changes it. The event has an id of its own, and a payment a transaction of its
// own, unless they are set.
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
	return bodies.In(string(l)).Event(string(eventType), append(l.transaction(eventType), withID(changes)...)...)
}

// Sparse is the function [Sparse] in this layout.
func (l Layout) Sparse(eventType zeltapay.EventType, changes ...Change) []byte {
	return bodies.In(string(l)).Sparse(string(eventType), withID(changes)...)
}

// withID sets the fields that name an event, before the changes that the test wants.
func withID(changes []Change) []Change {
	return append([]Change{Set("eventId", newID())}, changes...)
}

// transaction names a payment's transaction, where its layout has the name.
func (l Layout) transaction(eventType zeltapay.EventType) []Change {
	path := map[Layout]string{Flat: "transaction.externalPaymentId", Nested: "transaction.id"}[l]
	if eventType != zeltapay.EventPaymentSuccess || path == "" {
		return nil
	}
	return []Change{Set(path, fmt.Sprintf("txn_%016x", fixture.Number()))}
}

func newID() string { return fmt.Sprintf("evt_%016x", fixture.Number()) }

const (
	headerEventID   = "Zeltapay-Event-Id"
	headerEventType = "Zeltapay-Event-Type"
	headerAttempt   = "Zeltapay-Delivery-Attempt"
)

// Request makes the POST that delivers a body, signed now with the webhook's
// secret, see [zeltapay.Sign]. It is good for a handler's ServeHTTP, where the
// URL may be a path alone, and for [http.Client.Do].
//
// A body without an eventId gets one in its header, as Zelta Pay does, another
// one for each request.
//
// A request is sent once: make another one to deliver the body again. It panics
// for a URL that is none.
func Request(url, secret string, body []byte) *http.Request {
	r, err := fixture.NewRequest(context.Background(), url, body, "Content-Type", "application/json", headerAttempt, "1")
	if err != nil {
		panic("zeltapaytest: " + err.Error())
	}
	zeltapay.Sign(r.Header, body, secret, time.Now())
	if r.Header.Get(headerEventID) == "" {
		r.Header.Set(headerEventID, newID())
	}
	return r
}
