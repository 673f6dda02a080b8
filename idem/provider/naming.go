package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/scalar"
)

func (p *Definition) places() *places {
	p.once.Do(func() {
		n := p.Naming
		p.read = &places{
			eventType: pathOf(n.Type), ping: pathOf(n.Ping), ids: pathsOf(n.IDs), times: pathsOf(n.Times),
			events: make(map[string]*named, len(n.Events)),
		}
		for t, own := range n.Events {
			p.read.events[t] = &named{p.Empty(t), pathsOf(own.Key), pathsOf(own.ID), pathsOf(own.Times), pathOf(own.Test), own.Ping}
		}
		p.read.events[""] = new(named)
	})
	return p.read
}

// of returns the places of an event type's names.
func (p *places) of(eventType string) *named {
	if known := p.events[eventType]; known != nil {
		return known
	}
	return p.events[""]
}

// Identify names the event of a verified body. It never fails: a body that cannot
// be read has no Type, and an ID made by [idem.BodyID], as has an id that is not
// valid Unicode. Scope is left to the caller.
//
// The body is not decoded, only looked through for its names: a field that does
// not fit its type is found when the event is routed to a handler.
func (p *Definition) Identify(body []byte) idem.Event {
	var room [12]member // seldom more
	e, _ := p.identify(body, look(room[:0], body))
	return e
}

// words are the names in a body, as headers may say it again.
type words struct{ eventType, id string }

func (p *Definition) identify(body []byte, root members) (idem.Event, words) {
	at := p.places()
	said := words{root.text(at.eventType), root.id(at.ids)}
	plain := said.eventType
	switch {
	case root.has(at.ping):
		plain = PingType
	case p.Naming.Canonical != nil:
		plain = p.Naming.Canonical(plain)
	}
	own := at.of(plain)
	e := idem.Event{Source: p.Source, ID: said.id, Type: plain, Key: root.first(own.key), Payload: body}
	if e.ID == "" {
		if e.ID = idem.BodyID(body); root.id(own.id) != "" {
			e.ID = plain + ":" + root.id(own.id)
		}
	}
	if root.isTrue(own.test) {
		e.Type += TestSuffix
	}
	e.OccurredAt = p.timeAt(root, own.times, at.times)
	return e, said
}

// timeAt is the first time there is, or zero when there is none to read.
func (p *Definition) timeAt(root members, lists ...[]path) time.Time {
	clock := p.Naming.Clock
	if clock == nil {
		clock = func(text string) (time.Time, error) { return scalar.Time(text).Time() }
	}
	for _, paths := range lists {
		for _, path := range paths {
			if text := root.text(path); text != "" {
				if at, err := clock(text); err == nil {
					return at
				}
			}
		}
	}
	return time.Time{}
}

// Plain is an event type without [TestSuffix].
func Plain(eventType string) string { return strings.TrimSuffix(eventType, TestSuffix) }

// Decode decodes a verified body into the struct of its type, or into the value that other
// returns for a type that is not known. Fields that the struct does not have are
// skipped.
func (p *Definition) Decode(body []byte, other func() any) (any, error) {
	var room [12]member
	root := look(room[:0], body)
	said := root.text(p.places().eventType)
	if said == "" {
		return nil, fmt.Errorf("%s: the body is not an event: it is no JSON object with a %s that names one", p.Source, p.Naming.Type)
	}
	eventType := said
	if p.Naming.Canonical != nil {
		eventType = p.Naming.Canonical(said)
	}
	e := p.Empty(eventType)
	if e == nil || root.has(p.places().ping) { // a test of the address has a real event's name, and nothing else of it
		e = other()
	}
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fmt.Errorf("%s: a %s does not decode: keep the body, and look for a newer version of this package: %w", p.Source, said, err)
	}
	return e, nil
}
