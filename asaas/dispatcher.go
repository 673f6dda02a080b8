package asaas

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/provider"
)

// Dispatcher verifies Asaas's deliveries and takes each event to its handler.
// Register handlers with the On… methods, then give it to
// [idem.NewProcessor].
//
// The exported fields are settings: change them before the first event.
type Dispatcher struct {
	idem.Routes

	// Accounts returns the accounts that may have sent a request, beside the one of
	// NewDispatcher's tokens, which has scope "". Default: that one only.
	//
	// Return the account that r.PathValue names, or return them all: the token
	// that verifies decides which Scope the event gets. For a request of no
	// known account return none, which refuses it. An error means that the
	// accounts could not be found out now: Asaas is asked to deliver again.
	//
	// An account without a Scope is such an error, too: r.PathValue is "" under
	// a router that does not set it. net/http's and chi do; for gin, echo and
	// fiber see the package comment.
	//
	// An account that gets a Scope, or another one, has every event that comes
	// again as a new one, which is done twice: leave its token to NewDispatcher, or
	// move its events first, with operator.Operator.Rescope.
	Accounts func(r *http.Request) ([]idem.Credentials, error)

	// AllowFrom is the addresses that may deliver, such as
	// [OfficialAddresses]. Default: nil, any address may. An empty list that
	// is not nil allows none. With a list, a delivery that is refused for its token is taken
	// for Asaas's own, and makes health red.
	AllowFrom []netip.Prefix

	// ClientAddrHeader names the header in which the nearest proxy writes the
	// sender's address, X-Forwarded-For for example: its last element counts.
	// Default: "", the address of the connection. Name a header only behind a
	// proxy that writes it, else the sender does.
	ClientAddrHeader string

	// Watch looks for fields and values that Asaas sends and this package does not know; see
	// [Dispatcher.Drift].
	Watch drift.Watch

	tokens func() []string // a function, so that printing shows no token
}

// NewDispatcher returns a Dispatcher for one webhook with its token; with the
// new and the old one during a rotation. Empty tokens never verify, and without
// any other every delivery is refused, with 503: the mistake is not Asaas's.
func NewDispatcher(tokens ...string) *Dispatcher {
	tokens = slices.Clone(tokens)
	d := &Dispatcher{tokens: func() []string { return tokens }}
	for other, eventType := range aliases {
		d.Alias(string(other), string(eventType))
	}
	return d
}

// Configured returns an [*idem.Refusal] if there is no token, nor a function Accounts: every
// delivery is answered 503 then. [idem.Serve] logs it at the start.
func (d *Dispatcher) Configured() error { return d.receiver().Configured() }

// AlwaysScoped reports whether every event gets a scope: there is a function Accounts, and no
// token of NewDispatcher. See [idem.Endpoint.AlwaysScoped].
func (d *Dispatcher) AlwaysScoped() bool { return d.receiver().AlwaysScoped() }

// Open implements [idem.Source]: it verifies as [Verify] does, before it reads
// the body, and names as [Identify] does.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) {
	if err := checkAddress(r, d.AllowFrom, d.ClientAddrHeader); err != nil {
		return idem.Event{}, err
	}
	e, err := d.open(r)
	if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
		refusal.OfProvider = d.AllowFrom != nil
	}
	return e, err
}

func (d *Dispatcher) open(r *http.Request) (idem.Event, error) {
	if err := checkForm(r.Header); err != nil {
		return idem.Event{}, err
	}
	e, err := d.receiver().Open(r)
	if err == nil {
		err = checkKind(r.Header, e.Payload)
	}
	if err != nil {
		return idem.Event{}, err
	}
	return e, nil
}

func (d *Dispatcher) receiver() provider.Receiver {
	r := provider.Receiver{Definition: &definition, Routes: &d.Routes, Watch: &d.Watch, Scheme: definition.Scheme, Accounts: d.Accounts}
	if d.tokens != nil {
		r.Secrets = d.tokens()
	}
	return r
}

// Route implements [idem.Source]. An event with null, or nothing, in
// place of its entity or of the entity's id, amount or status is an error: its
// struct would hold zeros that Asaas did not send. Any other field that is null or
// missing is handled, and reported by [Dispatcher.Drift].
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) { return d.receiver().Route(e) }

// Drift returns the fields and values that this dispatcher was sent and this package does not know,
// since the program started: the path, the kind of difference, how often, and
// never a value. Package drift lists the differences. To be told of each
// finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }
