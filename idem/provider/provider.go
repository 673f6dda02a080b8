// Package provider is the base of a provider's package that gen makes of a
// spec: it verifies deliveries, names events, and takes them to their handlers.
// A [Definition] holds the differences between providers.
//
// A program imports the generated package, and this one only to choose another
// [Scheme].
package provider

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/internal/inside"
)

// Dispatcher is embedded by a generated Dispatcher: an [idem.Source].
//
// The exported fields are settings: change them before the first event.
type Dispatcher struct {
	idem.Routes

	// Scheme is the way in which deliveries are verified. Default: the first of the spec.
	Scheme Scheme

	// Accounts returns the accounts that may have sent a request, beside the one of
	// NewDispatcher's secrets, which has scope "". Default: that one only.
	//
	// Return the account that r.PathValue names, or return them all: the secret that
	// verifies decides the event's Scope. For a request of no known account return none,
	// which refuses it. An error means that the accounts could not be found out now: the
	// provider is asked to deliver again. So does an account without a Scope: r.PathValue is
	// "" under a router that does not set it. net/http's and chi do; in gin, echo and fiber
	// call r.SetPathValue before the handler.
	//
	// An account that gets a Scope, or another one, has every event that comes
	// again as a new one, which is done twice: leave its secret to NewDispatcher, or
	// move its events first, with operator.Operator.PlanRescope.
	Accounts func(r *http.Request) ([]idem.Credentials, error)

	// AllowFrom is the addresses that may deliver. Default: nil, any address may. An empty
	// list that is not nil allows none. With a list, a delivery that is refused for its token or
	// signature is taken for the provider's own, and makes health red.
	AllowFrom []netip.Prefix

	// ClientAddrHeader names the header in which the nearest proxy writes the
	// sender's address: its last element counts. Use X-Forwarded-For behind one proxy,
	// CF-Connecting-IP behind Cloudflare and another proxy, or Forwarded, whose parameter
	// for has the address. A refusal names the address. Default: "", the address of the
	// connection. Name a header only behind a proxy that writes it: otherwise the sender
	// writes it.
	ClientAddrHeader string

	// AllowTest gives events in which no money moved to the handlers of their type,
	// where the provider marks such events. Default: false, they are acknowledged
	// with a line in the log, and not stored.
	AllowTest bool

	// StrictHeaders refuses a delivery if its unsigned headers differ from the values that were
	// signed. Default: false, the signed body counts, and Drift reports it.
	StrictHeaders bool

	// Watch looks for fields and values that the provider sends and the spec does not know.
	Watch drift.Watch

	// Logger gets a line for each event that is a test and ignored, and one per header
	// that differs from the signed body; nil logs nothing. Default: slog.Default().
	Logger *slog.Logger

	// Now returns the time. Default: [time.Now].
	Now func() time.Time

	about   *Definition
	secrets func() []string // a function, so that printing shows no secret
}

// Setup makes d the dispatcher of a provider, with its secrets. A generated
// NewDispatcher calls it.
func (d *Dispatcher) Setup(about *Definition, secrets ...string) {
	secrets = slices.Clone(secrets)
	d.about, d.Scheme, d.Logger = about, about.Scheme, slog.Default()
	d.secrets = func() []string { return secrets }
}

var unset = Definition{Source: "provider", Empty: func(string) any { return nil }}

// definition returns an empty one for a Dispatcher without Setup, which refuses everything.
func (d *Dispatcher) definition() *Definition {
	if d.about == nil {
		return &unset
	}
	return d.about
}

// Name implements [idem.Source].
func (d *Dispatcher) Name() string { return d.definition().Source }

// Handles is [idem.Routes.Handles], of the type without [TestSuffix].
func (d *Dispatcher) Handles(eventType string) bool { return d.Routes.Handles(Plain(eventType)) }

// Alias makes other another name of eventType, so that a caller that registers a handler for other, or ignores
// it, means eventType. A generated NewDispatcher calls it.
func (d *Dispatcher) Alias(other, eventType string) {
	inside.Of[interface{ Alias(other, eventType string) }](&d.Routes).Alias(other, eventType)
}

// Drift returns the fields and values that this dispatcher was sent and the spec does not know, since
// the program started, and never a value.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// Format implements [fmt.Formatter]: every verb shows the kind of Dispatcher, and
// no secret.
func (d *Dispatcher) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "%s.Dispatcher{%d event types, secrets redacted}", d.Name(), len(d.Routes.Types()))
}

// LogValue implements [slog.LogValuer]. It shows no secret.
func (d *Dispatcher) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(d)) }

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (d *Dispatcher) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(d)) }

// Definition holds a spec's description of a provider.
type Definition struct {
	Source  string // part of the key of every stored event: it never changes
	Naming  Naming
	Scheme  Scheme   // how deliveries are verified, unless the program chooses another
	Headers []Header // unsigned, and repeat a signed value

	// Guard, if not nil, judges each delivery once more: err is nil for one that is verified, or the
	// error that it has. Guard returns err, or an [*idem.Refusal] of its own with the remedy: for a
	// genuine request that is no event, which is answered 503 and counts as a failed delivery, or for
	// a request that no secret can verify. With an error, body may be nil, not read. Guard cannot
	// accept a delivery that is not verified.
	Guard func(h http.Header, body []byte, err error) error

	Empty func(eventType string) any // a pointer to a new event struct; nil for a type that is not known

	once sync.Once
	read *places
}

// Naming holds the places of an event's names. Its paths are names of members from
// the body on, parted by dots. A question mark behind a name is for a member that
// decodes into a value.Optional: null empties it, and of several the last counts
// whole. # ends the path of a value that may be sent as a number.
type Naming struct {
	Type      string                               // the root member that names the event
	IDs       []string                             // the first that has a value is the event's id
	Times     []string                             // the first that is a time is the event's
	Clock     func(text string) (time.Time, error) // reads a time; nil: as value.Time does
	Ping      string                               // a root member that only tests of the address have
	Canonical func(eventType string) string        // the constant of a type that comes by several names; nil: there is none
	Events    []Names                              // of all known types
}

// Names are the places of names that events of some types have of their own.
type Names struct {
	Types []string
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
