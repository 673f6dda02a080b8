package zeltapay

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/health/canary"
	"github.com/paghooks/paghooks/idem/provider"
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
	// secret that verifies decides which Scope the event gets. For a request
	// of no known account return none, which refuses it. An error means that
	// the accounts could not be found out now: Zelta Pay is asked to deliver
	// again.
	//
	// An account without a Scope is such an error: r.PathValue is "" under
	// a router that does not set it. net/http's and chi do; in gin, echo and
	// fiber call r.SetPathValue before the handler.
	//
	// An account that gets a Scope, or another one, has every event that comes
	// again as a new one, which is done twice: leave its secret to NewDispatcher, or
	// move its events first, with operator.Operator.Rescope.
	Accounts func(r *http.Request) ([]idem.Credentials, error)

	// Watch looks for fields and values that Zelta Pay sends and this package does not know; see
	// [Dispatcher.Drift].
	Watch drift.Watch

	// Logger gets a warning, once per header and event type, where an unsigned
	// header differs from the signed body, and a line for each test payment that is
	// ignored; nil logs nothing. Default: slog.Default().
	Logger *slog.Logger
}

// NewDispatcher returns a Dispatcher for one webhook with its signing secret;
// with the new and the old one during a rotation. Empty secrets never verify,
// and without any other every delivery is refused, with 503: a 401 would make
// Zelta Pay park the event at once.
func NewDispatcher(secrets ...string) *Dispatcher {
	return &Dispatcher{Verifier: Verifier{Secrets: secrets}, Logger: slog.Default()}
}

func (d *Dispatcher) receiver(h http.Header) provider.Receiver {
	r := d.Verifier.receiver(h)
	r.Routes, r.Watch, r.Accounts, r.AllowTest, r.Logger = &d.Routes, &d.Watch, d.Accounts, d.AllowTest, d.Logger
	return r
}

// Configured returns an [*idem.Refusal] if there is no secret, nor a function Accounts: every
// delivery is answered 503 then. [idem.Serve] logs it at the start.
func (d *Dispatcher) Configured() error {
	return d.receiver(nil).Configured()
}

// AlwaysScoped reports whether every event gets a scope: there is a function Accounts, and no
// secret of NewDispatcher. Package health is then red
// while events without a scope are stored, which are not recognized when they come again.
func (d *Dispatcher) AlwaysScoped() bool { return d.receiver(nil).AlwaysScoped() }

// Open implements [idem.Source]: it verifies as [Verify] does, the headers
// before it reads the body, and names as [Identify] does. In a receiver that remembers events, a
// delivery with an eventId may be as old as that remembers: Zelta Pay's dead-letter queue may send it again
// as it was signed once. One that the right secret has signed, and whose time is out of tolerance, is answered 503.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) { return d.receiver(r.Header).Open(r) }

// Route implements [idem.Source]. A payment that names neither its link nor its
// transaction, or has no amount, is an error: its layout is neither of the two
// that are known, and its struct would hold nothing of it. Any other field that is null
// or missing is handled, and reported by [Dispatcher.Drift]. A test payment has a
// handler only with AllowTest.
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) { return d.receiver(nil).Route(e) }

// Ignores is [idem.Routes.Ignores]. A ping without a handler is ignored, and a
// test payment without AllowTest.
func (d *Dispatcher) Ignores(eventType string) bool { return d.receiver(nil).Ignores(eventType) }

// Handles is [idem.Routes.Handles]. A test payment is handled as a payment is.
func (d *Dispatcher) Handles(eventType string) bool {
	return d.Routes.Handles(provider.Plain(eventType))
}

// Drift returns the fields and values that this dispatcher was sent and this package does not know,
// since the program started: the path, the kind of difference, how often, and
// never a value. Metadata is yours, and not looked at. Headers that differ from the body that
// was signed are among them, see [Verifier].StrictHeaders. Package drift lists
// the other differences. To be told of each finding when it is new, set Watch.Observe.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// NewCanary returns a canary for a webhook: address is its URL at Zelta Pay,
// secret one that the receiver verifies with. Each delivery is signed anew, in both
// formats, so that it verifies with any [Verifier].SignedFormat.
func NewCanary(address, secret string) *canary.Canary {
	body, _ := json.Marshal(map[string]string{ // texts
		"type": canary.EventType, "eventId": "evt_canary_" + rand.Text(), "createdAt": time.Now().UTC().Format(time.RFC3339),
	})
	return canary.New(definition.Source, address, body, func(h http.Header, body []byte) {
		now, plain := time.Now(), make(http.Header)
		FormatPlain.Sign(plain, body, secret, now)
		_, code, _ := strings.Cut(plain.Get(schemeHMAC.Header), ", ")
		Sign(h, body, secret, now)
		h.Set(schemeHMAC.Header, h.Get(schemeHMAC.Header)+", "+code)
	})
}

// Why a delivery was refused: the Reason of the [idem.Refusal] that [Verify]
// and [Dispatcher.Open] return.
const (
	ReasonNotConfigured                  = idem.ReasonNotConfigured // there is no secret to verify with
	ReasonUnknownAccount     idem.Reason = "unknown_account"        // Accounts knows no account that may send this
	ReasonDuplicateHeader    idem.Reason = "duplicate_header"       // one header, several times
	ReasonMissingSignature   idem.Reason = "missing_signature"      // no Zeltapay-Signature
	ReasonMalformedSignature idem.Reason = "malformed_signature"    // not t=…, v1=…
	ReasonMissingTimestamp   idem.Reason = "missing_timestamp"      // a bare signature without Zeltapay-Timestamp
	ReasonMalformedTimestamp idem.Reason = "malformed_timestamp"    // not Unix seconds in digits
	ReasonTimestampMismatch  idem.Reason = "timestamp_mismatch"     // StrictHeaders: Zeltapay-Timestamp is not the signature's t
	ReasonStale              idem.Reason = "stale"                  // signed too long ago
	ReasonFuture             idem.Reason = "future"                 // signed too far in the future
	ReasonWrongSignature     idem.Reason = "wrong_signature"        // no secret gives this signature
	ReasonAmbiguousSecret    idem.Reason = "ambiguous_secret"       // the secret belongs to two scopes
	ReasonEventIDMismatch    idem.Reason = "event_id_mismatch"      // StrictHeaders: Zeltapay-Event-Id is not the body's eventId
	ReasonEventTypeMismatch  idem.Reason = "event_type_mismatch"    // StrictHeaders: Zeltapay-Event-Type is not the body's type
)
