package asaas

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/peek"
)

// Parse decodes a body that has been verified. Fields and enum values that
// this package does not know are no error, and an event type that it does not
// know becomes an [*UnknownEvent]. An error means that the body is not a JSON
// object that names an event, or that a field does not fit its type; it tells
// the field's path.
//
// A null, and a field that is missing, are no error: an amount may be a 0 that
// nobody sent. The struct's Check method tells. Before a handler it is called.
func Parse(body []byte) (Event, error) {
	said := headOf(body).event
	if said == "" {
		return nil, errors.New("asaas: the body is not an event: it is no JSON object with the name of one")
	}
	e := emptyEvent(said)
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fmt.Errorf("asaas: a %s does not decode: keep the body, and look for a newer version of this module: %w", said, err)
	}
	return e, nil
}

// emptyEvent is an event to decode a body of that type into.
func emptyEvent(t EventType) Event {
	if create := newEvent[canonical(t)]; create != nil {
		return create()
	}
	return new(UnknownEvent)
}

// canonical is the name of an event type that its constant has.
func canonical(t EventType) EventType { return cmp.Or(aliases[t], t) }

// head is what names an event. It is found without decoding the rest, and is
// what decoding finds.
type head struct {
	id          string
	event       EventType
	dateCreated DateTime
	key         string
}

// headOf is empty for a body that is not a whole JSON object.
func headOf(body []byte) (h head) {
	var objects [4]member // seldom more
	inside := objects[:0]
	whole := peek.Members(body, func(name, value []byte) {
		switch {
		case value[0] == '{':
			inside = append(inside, member{name, value})
		case peek.Is(name, "id"):
			if peek.String(value, &h.id); peek.Lossy(value) {
				h.id = idem.BodyID(value) // or all such ids were one
			}
		case peek.Is(name, "event"):
			peek.String(value, (*string)(&h.event))
		case peek.Is(name, "dateCreated"):
			peek.String(value, (*string)(&h.dateCreated))
		}
	})
	if !whole {
		return head{}
	}
	h.key = keyIn(inside, kinds()[canonical(h.event)].subject)
	return h
}

type member struct{ name, value []byte }

// keyIn is the id of the object that an event is about, which is called subject.
func keyIn(objects []member, subject string) (key string) {
	for _, m := range objects {
		if subject != "" && peek.Is(m.name, subject) {
			peek.Members(m.value, func(name, value []byte) {
				if peek.Is(name, "id") {
					peek.Text(value, &key)
				}
			})
		}
	}
	return key
}

// Identify names the event of a verified body, for [idem.Processor.Accept] and
// the like. It never fails: a body that cannot be read has no Type, and an ID
// made by [idem.BodyID], as has an id that is not valid Unicode. An event type that comes by two names has the Type of
// its constant. Scope is left to the caller.
//
// The body is not decoded, only looked through for what names it: a field that
// does not fit its type is found when the event is routed to a handler.
func Identify(body []byte) idem.Event {
	h := headOf(body)
	e := idem.Event{Source: sourceName, ID: h.id, Type: string(canonical(h.event)), Key: h.key, Payload: body}
	if e.ID == "" {
		e.ID = idem.BodyID(body)
	}
	e.OccurredAt, _ = h.dateCreated.Time() // zero where it cannot be read
	return e
}
