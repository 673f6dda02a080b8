package idem

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/redact"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Event is one delivery of a provider's event, verified and named.
//
// Source, Scope and ID together name the event: two deliveries with the same three are the same event. A
// delivery of an event that is done, pending or discarded has no effect; an event that is unhandled or parked is
// processed again, by workers; where none run, it waits for [Inbox.Replay]. So none of the three may change for an
// event that may come again: see operator.Operator.PlanRescope.
type Event struct {
	Source string // the provider: "asaas", "zeltapay"
	Scope  string // the provider's account or environment, at most 255 bytes; "" if there is only one
	ID     string // the provider's event id; "sha256:…" of the body if the provider gives none, or of an id that cannot be stored

	Type string // the provider's event name: "PAYMENT_RECEIVED"; [UnreadableType] if the body names no event
	Key  string // the entity the event is about: "pay_123"; "" if there is none

	OccurredAt time.Time // the provider's own time of the event; zero if the provider gives none
	Payload    []byte    // the body as received, byte for byte
}

// Format implements [fmt.Formatter]: with any verb an event prints as its names, its time and the
// length of its body. The body holds a person's data, and is not printed.
func (e Event) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Source:%q Scope:%q ID:%q Type:%q Key:%q OccurredAt:%s Payload:%d bytes}",
		e.Source, e.Scope, e.ID, e.Type, e.Key, e.OccurredAt.Format(time.RFC3339Nano), len(e.Payload))
}

// LogValue implements [slog.LogValuer]: an event is logged as it prints, without its body.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(slog.String("source", e.Source), slog.String("scope", e.Scope), slog.String("id", e.ID),
		slog.String("type", e.Type), slog.String("key", e.Key), slog.Time("occurred_at", e.OccurredAt), slog.Int("bytes", len(e.Payload)))
}

// row returns the event as package store has it.
func (e Event) row() store.Event { return store.Event(e) }

// BodyID names a body that carries no event id of its own, by its content:
// the same bytes are the same event.
func BodyID(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Outcome is the result of one delivery or of one attempt.
type Outcome string

// Outcomes that are also states name the stored state.
const (
	Done      Outcome = "done"      // the event's work is committed
	Pending   Outcome = "pending"   // stored; workers are next
	Retrying  Outcome = "retrying"  // not done, and rolled back: the provider delivers it again, or a worker tries it again
	Unhandled Outcome = "unhandled" // no handler: stored with its payload for Replay
	Parked    Outcome = "parked"    // names no event, does not decode, or failed too often: stored with its payload for a person
	Published Outcome = "published" // confirmed by the broker of a relay; its consumers are next
	Duplicate Outcome = "duplicate" // the event was stored before; nothing ran
	Ignored   Outcome = "ignored"   // the application ignores this type; nothing is stored
	Unknown   Outcome = "unknown"   // of a rerun: the answer to COMMIT was lost, or came too late to count, and Postgres could not be asked
	Refused   Outcome = "refused"   // not genuine; nothing is stored
	Rejected  Outcome = "rejected"  // not a delivery at all: wrong method
)

// Acknowledged reports whether the provider may forget the event: the event is committed, confirmed by a
// broker, or not wanted by the application.
func (o Outcome) Acknowledged() bool {
	switch o {
	case Done, Pending, Published, Duplicate, Unhandled, Ignored, Parked:
		return true
	}
	return false
}

// State is the stored state of an event.
type State string

const (
	StateDone      State = store.Done      // its work is committed
	StatePending   State = store.Pending   // acknowledged; workers are to process it
	StateUnhandled State = store.Unhandled // acknowledged without a handler
	StateParked    State = store.Parked    // acknowledged although it failed
	StateDiscarded State = store.Discarded // given up by hand
)

// wrap names the event in an error that callers get.
func wrap(e Event, err error) error {
	if err == nil {
		return nil
	}
	if !pgtx.WorkFailed(err) {
		err = redact.Own(err)
	}
	return fmt.Errorf("idem: %s %s: %w", e.Type, e.ID, err)
}

// errorText returns the text of an error for the table.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	return new(store.Storable(err.Error(), store.MaxError))
}

// Source turns deliveries of one provider into events and events into work.
// asaas.Dispatcher and zeltapay.Dispatcher are sources; embed [Routes] for
// Ignores and Route. Its methods are called from many goroutines at once.
type Source interface {
	// Name is the provider's name. It is part of every stored event's key, so
	// it never changes (unless operator.Operator.PlanRescope moves the events), and has no slash.
	Name() string

	// Open verifies a delivery and names its event. It refuses a request that the headers
	// alone show not to be genuine, and only then reads the body, with [ReadBody].
	//
	// A [*Refusal] means that the delivery is not genuine or not an event. Any other error means that Open
	// could not decide, and the provider is asked to deliver again. A genuine body that names no event is
	// not an error: the event has no Type, and an ID made by [BodyID]. If it is empty, it is delivered
	// again; otherwise it is parked: see [UnreadableType].
	Open(r *http.Request) (Event, error)

	// Ignores reports whether events of a type are acknowledged without being
	// stored.
	Ignores(eventType string) bool

	// Route finds the event's handler and decodes the event for it. A nil Work without an error means that
	// there is no handler. An error means that the event does not decode into its type: the event is parked.
	Route(e Event) (Work, error)
}

// checkSource panics if the source's name cannot be used: a mistake in the program.
func checkSource(source Source) {
	if name := source.Name(); name == "" || strings.Contains(name, "/") || !store.Nameable(name) {
		panic(fmt.Sprintf("idem: a source's name is %q: it must not be empty or have a slash, its events would be another's", name))
	}
}

// Reason says, for machines, why a delivery was refused. Package provider declares most of them:
// provider.ReasonWrongToken, provider.ReasonStale. There are few, and all are constants: metrics count by them.
type Reason string

// ReasonNotConfigured refuses every delivery while the application has no secret to verify with. The
// application is at fault, so the answer is 503: the provider delivers again, and the event is processed once
// there is a secret.
const ReasonNotConfigured Reason = "not_configured"

// Refusal is the error of a delivery that is not genuine, or not an event. The answer is 401, or 503 where
// the sender is not at fault, so that the provider delivers again. Nothing is stored.
type Refusal struct {
	Source string // the provider
	Reason Reason // for machines
	Hint   string // for people: the fault and the remedy; never a secret

	// WrongSecret is set if the delivery has a secret, or a signature, that is not the application's: a
	// stranger's, or the provider's after a change on one side. Package health tells the two apart as well as
	// it can.
	WrongSecret bool

	// SentToken is a hash of the token that was sent, if the token is not the application's; "" for a
	// signature. A stranger sends another guess each time, a provider with a wrong token the same token again
	// and again.
	SentToken string

	// Misconfigured is set if the application's own settings are at fault: two of its accounts have one
	// secret, for example. The answer is 503, as for ReasonNotConfigured.
	Misconfigured bool

	// SignedBody is the [BodyID] of a delivery that is signed with the right secret, and refused for the time
	// that was signed, or for a header that was not; "" for any other delivery. The answer is 503, and package
	// health reports the number of such bodies.
	SignedBody string

	// Altered is set if no secret verifies the body because it cannot be the body that was signed: it is
	// empty, not whole, too large to be read, or no JSON object. The answer is 503: it may be the
	// provider's, altered on the way.
	Altered bool

	// OfProvider is set if the delivery came from an address that only the provider
	// delivers from, as far as the application knows.
	OfProvider bool
}

// Error implements error: the provider, the reason and the hint.
func (r *Refusal) Error() string {
	return r.Source + ": delivery refused (" + string(r.Reason) + "): " + r.Hint
}

// isOwnFault reports whether the application is at fault, so that the provider is to deliver again.
func (r *Refusal) isOwnFault() bool { return r.Misconfigured || r.Reason == ReasonNotConfigured }

// Credentials are the secrets of one account at a provider (Asaas calls them
// tokens) and the Scope that the account's events are stored under, of at most 255 bytes.
//
// Credentials print and log as their scope and the number of their secrets, never a secret.
type Credentials struct {
	Scope   string
	Secrets []string // each of them verifies: the new and the old secret during a rotation
}

// Format implements [fmt.Formatter]. No verb shows a secret.
func (c Credentials) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Scope:%q Secrets:%d redacted}", c.Scope, len(c.Secrets))
}

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"scope":%q,"secrets":%d}`, c.Scope, len(c.Secrets)), nil
}
