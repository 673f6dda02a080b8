package asaas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem"
)

// Event is one of the package's event structs: a [*PaymentEvent] and so on or,
// for an event type that is newer than this package, an [*UnknownEvent]. Tell
// them apart with a type switch.
type Event interface {
	envelope() *Envelope
	key() string
	check(body []byte) error // that there is what the event is nothing without
}

func (e *Envelope) envelope() *Envelope { return e }

// UnknownEvent is an event of a type that is newer than this package.
type UnknownEvent struct {
	Envelope
	Raw json.RawMessage // the whole body
}

func (*UnknownEvent) key() string { return "" }

func (*UnknownEvent) check([]byte) error { return nil }

// UnmarshalJSON implements [json.Unmarshaler]. It takes any JSON.
func (e *UnknownEvent) UnmarshalJSON(data []byte) error {
	e.Raw = bytes.Clone(data)
	// A new event may use the envelope's names for something else. Raw has it,
	// and the fields that do fit are set.
	_ = json.Unmarshal(data, &e.Envelope)
	return nil
}

// MarshalJSON implements [json.Marshaler]. It writes Raw.
func (e UnknownEvent) MarshalJSON() ([]byte, error) { return e.Raw.MarshalJSON() }

// Parse decodes a body that has been verified. Fields and enum values that
// this package does not know are no error, and an event type that it does not
// know becomes an [*UnknownEvent]. An error means that the body is not a JSON
// object that names an event, or that a field does not fit its type; it tells
// the field's path.
func Parse(body []byte) (Event, error) {
	guess := glance(body)
	e, err := decode(guess, body)
	if err == nil && guess != "" && e.envelope().Event == guess {
		return e, nil
	}
	said := headOf(body).Event
	if said == "" {
		return nil, errors.New("asaas: the body is not an event: it is no JSON object with the name of one")
	}
	e, err = decode(said, body)
	if err != nil {
		return nil, fmt.Errorf("asaas: a %s does not decode: keep the body, and look for a newer version of this module: %w", said, err)
	}
	return e, nil
}

// glance guesses the event type, so that a body is decoded once. What the whole
// decoding says is what counts.
func glance(body []byte) EventType {
	_, value, _ := bytes.Cut(body, []byte(`"event"`))
	value, _ = bytes.CutPrefix(bytes.TrimLeft(value, ": \t\r\n"), []byte(`"`))
	name, _, _ := bytes.Cut(value, []byte(`"`))
	return EventType(name)
}

func decode(t EventType, body []byte) (Event, error) {
	var e Event = new(UnknownEvent)
	if create := newEvent[official(t)]; create != nil {
		e = create()
	}
	return e, json.Unmarshal(body, e)
}

// official is the name of an event type that its constant has.
func official(t EventType) EventType { return cmp.Or(aliases[t], t) }

// head is what names an event. Read by itself, it names an event whose rest
// does not decode.
type head struct {
	ID          string
	Event       EventType
	DateCreated DateTime
}

func headOf(body []byte) (h head) {
	_ = json.Unmarshal(body, &h) // what does not fit stays empty
	return h
}

// Identify names the event of a verified body, for [idem.Processor.Accept] and
// the like. It never fails: a body that cannot be read has no Type, and an ID
// made by [idem.BodyID]. An event type that comes by two names has the Type of
// its constant. Scope is left to the caller.
func Identify(body []byte) idem.Event {
	e := idem.Event{Source: sourceName, Payload: body}
	decoded, err := Parse(body)
	var h head
	if err == nil {
		v := decoded.envelope()
		h = head{v.ID, v.Event, v.DateCreated}
		e.Key, e.Decoded = decoded.key(), decoded
	} else {
		h = headOf(body)
	}
	e.ID, e.Type = h.ID, string(official(h.Event))
	if e.ID == "" {
		e.ID = idem.BodyID(body)
	}
	e.OccurredAt, _ = h.DateCreated.Time() // zero where it cannot be read
	return e
}
