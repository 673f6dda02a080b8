package provider

import (
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Definition holds a spec's description of a provider.
type Definition struct {
	Source  string // part of the key of every stored event: it never changes
	Naming  Naming
	Scheme  Scheme                     // how deliveries are verified, unless the program chooses another
	Headers []Header                   // unsigned, and repeat a signed value
	Empty   func(eventType string) any // a pointer to a new event struct; nil for a type that is not known

	once sync.Once
	read *places
}

// Naming holds the places of an event's names. Its paths are names of members from
// the body on, parted by dots. A question mark behind a name is for a member that
// decodes into an optional.Value: null empties it, and of several the last counts
// whole. # ends the path of a value that may be sent as a number.
type Naming struct {
	Type      string                               // the root member that names the event
	IDs       []string                             // the first that has a value is the event's id
	Times     []string                             // the first that is a time is the event's
	Clock     func(text string) (time.Time, error) // reads a time; nil: as scalar.Time does
	Ping      string                               // a root member that only tests of the address have
	Canonical func(eventType string) string        // the constant of a type that comes by several names; nil: there is none
	Events    map[string]Names
}

// Names are the places of names that events of one type have of their own.
type Names struct {
	Key   []string // the id of the event's entity
	ID    []string // with the type before it, an id of the event where Naming.IDs has none
	Times []string
	Test  string // is true where no money moved
	Ping  bool   // the event only tests the address
}

// Header is a header that is not signed, and repeats a signed value. The signed body
// counts; a difference is reported as drift.
type Header struct {
	Name string
	Says string // {time}, {id} or {type}
}

// PingType is the type of a delivery that only tests the address.
const PingType = "paghooks.ping"

// TestSuffix ends the type of an event in which no money moved, where its provider
// marks such events: payment.success:test. Its handler is that of payment.success.
const TestSuffix = ":test"

// named holds the places of an event type's names.
type named struct {
	empty          any // its struct, without anything in it; never written to
	key, id, times []path
	test           path
	ping           bool
}

// places are the naming's paths, ready to be followed.
type places struct {
	eventType, ping path
	ids, times      []path
	events          map[string]*named
}

func (p *Definition) refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: p.Source, Reason: reason, Hint: hint}
}

// isSecret reports whether s is a secret, and not an unset variable.
func isSecret(s string) bool { return strings.TrimSpace(s) != "" }
