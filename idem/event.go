package idem

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Event is one delivery of a provider's event, verified and named.
//
// Source, Scope and ID together name the event: two deliveries with the same
// three are the same event, and the second one has no effect.
type Event struct {
	Source string // the provider: "asaas", "zeltapay"
	Scope  string // the provider's account or environment; "" when there is one
	ID     string // the provider's event id; "sha256:…" of the body when it has none

	Type string // the provider's event name: "PAYMENT_RECEIVED"
	Key  string // the entity the event is about: "pay_123"; "" when there is none

	OccurredAt time.Time // the provider's own time of the event; zero when not said
	Payload    []byte    // the body as received, byte for byte

	// Decoded is what Payload decodes into, when [Source.Open] has already
	// decoded it; nil otherwise. It only spares [Handle] a second decoding.
	Decoded any
}

// Handler does the work of one event with the transaction that also records
// the event. E is a pointer to the event's type.
//
// Rows written through tx and the record of the event are committed together
// or not at all. Everything else a handler does (HTTP calls, e-mails, writes
// through another connection) happens at least once: the handler runs again
// after a failure. An error or a panic rolls everything back.
//
// The context outlives the HTTP client and ends at the processor's deadline.
// [EventFrom] tells which delivery is being handled, [AfterCommit] runs
// something once the transaction is committed.
type Handler[E any] func(ctx context.Context, tx pgx.Tx, e E) error

// Work is a handler with its decoded event, ready to run in a transaction.
type Work func(ctx context.Context, tx pgx.Tx) error
