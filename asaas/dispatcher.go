package asaas

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/health/canary"
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
	// An account without a Scope is such an error: r.PathValue is "" under
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
// token of NewDispatcher. Package health is then red
// while events without a scope are stored, which are not recognized when they come again.
func (d *Dispatcher) AlwaysScoped() bool { return d.receiver().AlwaysScoped() }

// Open implements [idem.Source]: it verifies as [Verify] does, before it reads
// the body, and names as [Identify] does.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) {
	if err := provider.CheckSender(r, definition.Source, d.AllowFrom, d.ClientAddrHeader); err != nil {
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

// OfficialAddresses returns the addresses that Asaas says it delivers from, in
// production. The sandbox also delivers from others, which are not published.
//
// See https://docs.asaas.com/docs/ips-oficiais-do-asaas.
func OfficialAddresses() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("52.67.12.206/32"),
		netip.MustParsePrefix("18.230.8.159/32"),
		netip.MustParsePrefix("54.94.136.112/32"),
		netip.MustParsePrefix("54.94.183.101/32"),
	}
}

// NewCanary returns a canary for a webhook: address is its URL at Asaas, token
// one that the receiver accepts. The token is sent there, so let it be https.
//
// With [Dispatcher].AllowFrom set, add the address that the canary comes from.
func NewCanary(address, token string) *canary.Canary {
	now := DateTime(time.Now().In(Brasilia()).Format(time.DateTime))
	body, _ := json.Marshal(Envelope{ID: "evt_canary_" + rand.Text(), Event: canary.EventType, DateCreated: now}) // three texts
	return canary.New(definition.Source, address, body, func(h http.Header, _ []byte) { h.Set(TokenHeader, token) })
}

// TokenHeader carries the webhook's token, as it was set at Asaas.
const TokenHeader = "Asaas-Access-Token"

// Why a delivery was refused: the Reason of the [idem.Refusal] that [Verify]
// and [Dispatcher.Open] return.
const (
	ReasonNotConfigured                    = idem.ReasonNotConfigured               // there is no token to verify with
	ReasonUnknownAccount                   = provider.ReasonUnknownAccount          // Accounts knows no account that may send this
	ReasonMissingToken                     = provider.ReasonMissingToken            // no asaas-access-token, or an empty one
	ReasonSeveralTokens                    = provider.ReasonSeveralTokens           // asaas-access-token more than once
	ReasonWrongToken                       = provider.ReasonWrongToken              // not a token of this application
	ReasonAmbiguousToken                   = provider.ReasonAmbiguousToken          // the token belongs to two scopes
	ReasonFormEncoded          idem.Reason = "form_encoded"                         // the webhook has apiVersion 2
	ReasonNotJSON              idem.Reason = "content_type_is_not_application_json" // genuine, but the Content-Type says that it is a form
	ReasonWithdrawalValidation idem.Reason = "withdrawal_validation"                // a question about a withdrawal, not an event
	ReasonAddressNotAllowed                = provider.ReasonAddressNotAllowed       // sent from outside of AllowFrom
)

// Verify checks that a delivery carries one of the tokens, and that it is an
// event. Several tokens are for a rotation; an empty one never verifies. The
// error is an [*idem.Refusal].
//
// A token is compared as it is, with its case and its spaces; net/http has
// taken the spaces around the header's value away. It is all the proof there
// is: Asaas signs nothing, neither the body nor the time.
//
// See https://docs.asaas.com/docs/sobre-os-webhooks.
func Verify(h http.Header, body []byte, tokens ...string) error {
	if err := checkForm(h); err != nil {
		return err
	}
	if err := definition.Verify(h, body, time.Now(), tokens...); err != nil {
		return err
	}
	return checkKind(h, body)
}

// checkForm refuses a delivery of a webhook with an old apiVersion, which has no token.
func checkForm(h http.Header) error {
	if !isForm(h) {
		return nil
	}
	if reason, _ := definition.Scheme.Check(h, time.Time{}); reason == ReasonMissingToken {
		return refuse(ReasonFormEncoded, "the body is a form, which carries no token: set apiVersion 3 in the webhook's configuration at Asaas; "+
			"by hand, send the headers Asaas-Access-Token and Content-Type: application/json")
	}
	return nil
}

// checkKind refuses genuine deliveries that are not for a receiver of events.
func checkKind(h http.Header, body []byte) error {
	switch {
	case isForm(h):
		return refuse(ReasonNotJSON, "the Content-Type says that the body is a form, as curl -d does unasked: add -H 'Content-Type: application/json'")
	case isWithdrawalValidation(body):
		return refuse(ReasonWithdrawalValidation, "Asaas asks here whether a withdrawal may be made or a split kept, and cancels it without an answer: "+
			"point the withdrawal validation at a URL of its own, in the security settings at Asaas")
	}
	return nil
}

func isForm(h http.Header) bool {
	const form = "application/x-www-form-urlencoded"
	is := strings.TrimSpace(h.Get("Content-Type"))
	if len(is) < len(form) || !strings.EqualFold(is[:len(form)], form) { // spares ordinary events the parsing
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(is)
	return mediaType == form
}

func refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: definition.Source, Reason: reason, Hint: hint}
}

// isToken reports whether s may be a token: an unset variable of a configuration
// is empty, or white space.
func isToken(s string) bool { return strings.TrimSpace(s) != "" }

// Canonical returns the constant of a type that Asaas also names in another way.
func (t EventType) Canonical() EventType { return canonical(t) }
