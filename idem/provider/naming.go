package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/scalar"
	"github.com/paghooks/paghooks/internal/peek"
)

// PingType is the type of a delivery that only tests the address.
const PingType = "paghooks.ping"

// Naming says where an event says what it is. Its paths are names of members from
// the body on, parted by dots.
type Naming struct {
	Type      string                        // the root member that names the event
	IDs       []string                      // the first that has a value is the event's id
	Times     []string                      // the first that is a time is the event's
	Ping      string                        // a root member that only tests of the address have
	Canonical func(eventType string) string // the constant of a type that comes by several names; nil: there is none
	Events    map[string]Names
}

// Names are what events of one type say at places of their own.
type Names struct {
	Key   []string // the id of what the event is about
	ID    []string // with the type before it, an id of the event where Naming.IDs has none
	Times []string
}

// Identify names the event of a verified body. It never fails: a body that cannot
// be read has no Type, and an ID made by [idem.BodyID]. Scope is left to the caller.
func (p *Definition) Identify(body []byte) idem.Event {
	n := p.Naming
	e := idem.Event{Source: p.Source, Payload: body}
	var ping bool
	whole := peek.Members(body, func(name, value []byte) {
		if n.Ping != "" && peek.Is(name, n.Ping) {
			ping = true
		}
		if peek.Is(name, n.Type) {
			peek.String(value, &e.Type)
		}
	})
	switch {
	case !whole:
		e.Type = ""
	case ping:
		e.Type = PingType
	case n.Canonical != nil:
		e.Type = n.Canonical(e.Type)
	}
	own := n.Events[e.Type]
	if whole {
		e.ID, e.Key = first(body, n.IDs), first(body, own.Key)
		e.OccurredAt = firstTime(body, own.Times, n.Times)
	}
	if id := first(body, own.ID); e.ID == "" && whole && id != "" {
		e.ID = e.Type + ":" + id
	}
	if e.ID == "" {
		e.ID = idem.BodyID(body)
	}
	return e
}

// Decode decodes a verified body into the struct of its type, or into what other
// returns for a type that is not known.
func (p *Definition) Decode(body []byte, other func() any) (any, error) {
	eventType := p.Identify(body).Type
	if eventType == "" {
		return nil, fmt.Errorf("%s: the body is not an event: it is no JSON object with a %s", p.Source, p.Naming.Type)
	}
	e := p.Empty(eventType)
	if e == nil {
		e = other()
	}
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fmt.Errorf("%s: a %s does not decode: keep the body, and see whether the spec is behind: %w", p.Source, eventType, err)
	}
	return e, nil
}

func first(body []byte, paths []string) string {
	for _, path := range paths {
		if text := find(body, path); text != "" {
			return text
		}
	}
	return ""
}

func firstTime(body []byte, lists ...[]string) time.Time {
	for _, paths := range lists {
		for _, path := range paths {
			if at, err := scalar.Time(find(body, path)).Time(); err == nil {
				return at
			}
		}
	}
	return time.Time{}
}

// find is the text, or the number as it is written, at a path. Of several members
// of one name the last counts, and null is nothing.
func find(object []byte, path string) (text string) {
	name, rest, deeper := strings.Cut(path, ".")
	peek.Members(object, func(member, value []byte) {
		switch {
		case !peek.Is(member, name):
		case deeper:
			text = find(value, rest)
		default:
			text = ""
			peek.Text(value, &text)
		}
	})
	return text
}
