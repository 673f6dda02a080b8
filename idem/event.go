package idem

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Event is one delivery of a provider's event, verified and named.
//
// Source, Scope and ID together name the event: two deliveries with the same
// three are the same event. Once it is done, pending or discarded, another one has
// no effect; one that is retrying, unhandled or parked is processed again. So none of
// the three may change for events that may come again, see operator.Operator.Rescope.
type Event struct {
	Source string // the provider: "asaas", "zeltapay"
	Scope  string // the provider's account or environment, at most 255 bytes; "" when there is one
	ID     string // the provider's event id; "sha256:…" of the body when it has none, or of an id that cannot be stored

	Type string // the provider's event name: "PAYMENT_RECEIVED"
	Key  string // the entity the event is about: "pay_123"; "" when there is none

	OccurredAt time.Time // the provider's own time of the event; zero when not said
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

// row is the event as package store has it.
func (e Event) row() store.Event { return store.Event(e) }

// BodyID names a body that carries no event id of its own, by its content:
// the same bytes are the same event.
func BodyID(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// SetAsideType is the event type of the bodies that [Common.SetAside] stores. No source is asked about
// an event of this type: it has no handler, and is not ignored.
const SetAsideType = store.SetAsideType

// Outcome is the result of one delivery or, in an [Inbox], of one attempt.
type Outcome string

// Outcomes that are also states name the stored state.
const (
	Done      Outcome = "done"      // the event's work is committed
	Pending   Outcome = "pending"   // stored by an inbox; its workers are next
	Retrying  Outcome = "retrying"  // not done, and rolled back: the provider delivers it again, or a worker tries it again
	Unhandled Outcome = "unhandled" // no handler: stored with its payload for Replay
	Parked    Outcome = "parked"    // does not decode, or failed too often: stored with its payload for Replay
	Published Outcome = "published" // confirmed by the broker of a relay; its consumers are next
	Duplicate Outcome = "duplicate" // the event was stored before; nothing ran
	Ignored   Outcome = "ignored"   // the application ignores this type; nothing is stored
	Unknown   Outcome = "unknown"   // the answer to COMMIT was lost, or came too late to count, and Postgres could not be asked; the next delivery or attempt finds out
	Refused   Outcome = "refused"   // not genuine; nothing is stored
	Rejected  Outcome = "rejected"  // not a delivery at all: wrong method, too large, cut off
)

// Acknowledged reports whether the provider may forget the event: it is committed,
// with a broker, or not wanted by the application.
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
	StatePending   State = store.Pending   // acknowledged; an inbox's workers are to process it
	StateRetrying  State = store.Retrying  // its delivery failed; the provider is to deliver it again
	StateUnhandled State = store.Unhandled // acknowledged without a handler
	StateParked    State = store.Parked    // acknowledged although it failed
	StateDiscarded State = store.Discarded // given up by hand
)

const maxName = store.MaxName

func nameable(s string) bool { return store.Nameable(s) }

// wrap names the event in an error that callers get.
func wrap(e Event, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("idem: %s %s: %w", e.Type, e.ID, err)
}

// explain adds the remedy to errors that have one usual cause.
func explain(err error) error { return store.Explain(err) }

// errorText returns the text of an error for the table.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	return new(store.Storable(err.Error(), store.MaxError))
}
