package asaas

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
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
	// that verifies decides whose Scope the event gets. For a request of no
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
	// is not nil allows none.
	AllowFrom []netip.Prefix

	// ClientAddrHeader names the header in which the nearest proxy writes the
	// sender's address, X-Forwarded-For for example: its last element counts.
	// Default: "", the address of the connection. Name a header only behind a
	// proxy that writes it, else the sender does.
	ClientAddrHeader string

	// Watch looks for what Asaas sends and this package does not know; see
	// [Dispatcher.Drift].
	Watch drift.Watch

	tokens func() []string // a function, so that printing shows no token
}

var _ idem.Source = (*Dispatcher)(nil)

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

// Name implements [idem.Source].
func (d *Dispatcher) Name() string { return sourceName }

// Open implements [idem.Source]: it verifies as [Verify] does, before it reads
// the body, and names as [Identify] does.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) {
	if err := d.checkAddress(r); err != nil {
		return idem.Event{}, err
	}
	accounts, err := d.accounts(r)
	if err != nil {
		return idem.Event{}, err
	}
	scope, err := verifyHeaders(r.Header, accounts)
	if err != nil {
		return idem.Event{}, err
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	if err := verifyBody(body); err != nil {
		return idem.Event{}, err
	}
	e := Identify(body)
	e.Scope = scope
	return e, nil
}

func (d *Dispatcher) accounts(r *http.Request) ([]idem.Credentials, error) {
	var unscoped idem.Credentials
	if d.tokens != nil {
		unscoped.Secrets = d.tokens()
	}
	if d.Accounts == nil {
		return []idem.Credentials{unscoped}, nil
	}
	accounts, err := d.Accounts(r)
	if err == nil && slices.ContainsFunc(accounts, func(c idem.Credentials) bool { return c.Scope == "" }) {
		err = errors.New("asaas: Accounts returned an account without a Scope: give each a name, and give the tokens of one that has none to NewDispatcher; " +
			"if it comes from r.PathValue, the router does not set that, call r.SetPathValue before the handler")
	}
	if slices.ContainsFunc(unscoped.Secrets, isToken) {
		accounts = append(slices.Clip(accounts), unscoped)
	}
	return accounts, err
}
