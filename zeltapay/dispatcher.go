package zeltapay

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Dispatcher verifies Zelta Pay's deliveries and takes each event to its
// handler. Register handlers with the On… methods, then give it to
// [idem.NewProcessor].
//
// An event without handler is kept for Replay, except webhook.ping: the test
// from the dashboard is answered and forgotten.
type Dispatcher struct {
	idem.Routes

	// Verifier checks the signatures. NewDispatcher sets its Secrets; its
	// other settings may be changed before the first event.
	Verifier Verifier

	// AllowTest gives test payments to the handler of payment.success. Default:
	// false, they are acknowledged with a line in the log and not stored, so
	// that nothing replays them later. See [EventTestPayment].
	//
	// Set it in a test environment only: to a handler that does not ask
	// [PaymentEvent.IsTest], a test payment is a payment. Where test and live
	// payments come to one program, give each its own secret and Scope.
	AllowTest bool

	// Accounts returns the accounts that may have sent a request, beside the one of
	// Verifier.Secrets, which has scope "". Default: that one only.
	//
	// Return the account that r.PathValue names, or return them all: the
	// secret that verifies decides whose Scope the event gets. For a request
	// of no known account return none, which refuses it. An error means that
	// the accounts could not be found out now: Zelta Pay is asked to deliver
	// again.
	//
	// An account without a Scope is such an error, too: r.PathValue is "" under
	// a router that does not set it. net/http's and chi do; in gin, echo and
	// fiber call r.SetPathValue before the handler.
	//
	// An account that gets a Scope, or another one, has every event that comes
	// again as a new one, which is done twice: leave its secret to NewDispatcher, or
	// move its events first, with operator.Operator.Rescope.
	Accounts func(r *http.Request) ([]idem.Credentials, error)

	// Watch looks for what Zelta Pay sends and this package does not know; see
	// [Dispatcher.Drift].
	Watch drift.Watch

	// Logger gets a warning, once per header and event type, where an unsigned
	// header is not what was signed, and a line for each test payment that is
	// ignored; nil logs nothing. Default: slog.Default().
	Logger *slog.Logger
}

var _ idem.Source = (*Dispatcher)(nil)

// NewDispatcher returns a Dispatcher for one webhook with its signing secret;
// with the new and the old one during a rotation. Empty secrets never verify,
// and without any other every delivery is refused, with 503: a 401 would make
// Zelta Pay park the event at once.
func NewDispatcher(secrets ...string) *Dispatcher {
	return &Dispatcher{Verifier: Verifier{Secrets: secrets}, Logger: slog.Default()}
}

// Name implements [idem.Source].
func (d *Dispatcher) Name() string { return sourceName }

// Open implements [idem.Source]: it verifies as [Verify] does, the headers
// before it reads the body, and names as [Identify] does.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) {
	accounts, err := d.accounts(r)
	if err != nil {
		return idem.Event{}, err
	}
	s, err := d.Verifier.verifyHeaders(r.Header, accounts)
	if err != nil {
		return idem.Event{}, err
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	scope, err := d.Verifier.verifyBody(s, body, accounts)
	if err != nil {
		return idem.Event{}, err
	}
	e, signed := identify(body)
	for _, c := range contradictions(r.Header, s, signed) {
		if d.Verifier.StrictHeaders {
			return idem.Event{}, c.refusal()
		}
		d.observe(r.Context(), providersType(e.Type), c)
	}
	e.Scope = scope
	d.logTest(r.Context(), e)
	return e, nil
}

func (d *Dispatcher) accounts(r *http.Request) ([]idem.Credentials, error) {
	unscoped := idem.Credentials{Secrets: d.Verifier.Secrets}
	if d.Accounts == nil {
		return []idem.Credentials{unscoped}, nil
	}
	accounts, err := d.Accounts(r)
	if err == nil && slices.ContainsFunc(accounts, func(c idem.Credentials) bool { return c.Scope == "" }) {
		err = errors.New("zeltapay: Accounts returned an account without a Scope: give each a name, and give the secrets of one that has none to NewDispatcher; " +
			"if it comes from r.PathValue, the router does not set that, call r.SetPathValue before the handler")
	}
	if slices.ContainsFunc(unscoped.Secrets, isSecret) {
		accounts = append(slices.Clip(accounts), unscoped)
	}
	return accounts, err
}

// Route implements [idem.Source]. A payment that names neither its link nor its
// transaction, or has no amount, is an error: its layout is neither of the two
// that are known, and its struct would hold nothing of it. Whatever else is null
// or missing is handled, and reported by [Dispatcher.Drift]. A test payment has a
// handler only with AllowTest.
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) {
	if d.Ignores(e.Type) {
		return nil, nil
	}
	e.Type = providersType(e.Type)
	work, err := d.Routes.Route(e)
	d.Watch.Look(e.Type, structs()[EventType(e.Type)], err, e.Payload)
	return work, err
}

// Ignores is [idem.Routes.Ignores]. A ping without a handler is ignored, and a
// test payment without AllowTest.
func (d *Dispatcher) Ignores(eventType string) bool {
	switch EventType(eventType) {
	case EventTestPayment:
		return !d.AllowTest || d.Routes.Ignores(providersType(eventType))
	case EventWebhookPing:
		return d.Routes.Ignores(eventType) || !d.Handles(eventType)
	}
	return d.Routes.Ignores(eventType)
}

// Handles is [idem.Routes.Handles]. A test payment is handled as a payment is.
func (d *Dispatcher) Handles(eventType string) bool {
	return d.Routes.Handles(providersType(eventType))
}
