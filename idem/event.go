package idem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

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

// Handler processes one event with the transaction that also records the event.
// E is a pointer to the event's type.
//
// Rows written through tx and the record of the event are committed together
// or not at all. Everything else a handler does (HTTP calls, e-mails, writes
// through another connection) happens at least once: the handler runs again
// after a failure. An error or a panic rolls everything back.
//
// The context outlives the HTTP client and ends after [Common.Timeout].
// [EventFrom] returns the delivery being handled, [AfterCommit] runs something
// once the transaction is committed.
//
// The transaction is the processor's to end. Its Commit and Rollback fail, and
// so do SQL statements that would end it. tx.Conn() returns the connection
// itself, where nothing is refused: a handler that ends the transaction there
// has failed, but its committed work stays committed.
//
// A handler may set a search_path or a role for the transaction, with SET LOCAL. That
// costs a round trip more in an Inbox, a Replay, or behind Emit of an outbox. In a trigger
// of the database it is not noticed: have that set them back.
type Handler[E any] func(ctx context.Context, tx pgx.Tx, e E) error

// Work is a handler with its decoded event, ready to run in a transaction.
type Work func(ctx context.Context, tx pgx.Tx) error

// BodyID names a body that carries no event id of its own, by its content:
// the same bytes are the same event.
func BodyID(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// SetAsideType is the event type of the bodies that [Common.SetAside] stores. No source is asked about
// an event of this type: it has no handler, and is not ignored.
const SetAsideType = store.SetAsideType

// row is the event as package store has it.
func (e Event) row() store.Event { return store.Event(e) }

const maxName = store.MaxName

func nameable(s string) bool { return store.Nameable(s) }
