package spool

import (
	"context"
	"log/slog"
)

// Sink takes the events of a spool. Its methods do not panic. Sinks are compared
// with ==.
type Sink interface {
	// Decode returns the event of a record. After an error it is never to be stored,
	// and is only good for Log.
	Decode(record []byte) (Event, error)

	// Insert stores events in one statement, all or none, and returns the result for
	// each.
	Insert(ctx context.Context, events []Event) ([]Inserted, error)

	// Meaning classifies an error of Insert.
	Meaning(err error) Meaning

	// Log logs a line, with the name of e and with err unless they are nil.
	Log(ctx context.Context, level slog.Level, message string, e Event, err error, attrs ...slog.Attr)
}

// Event is an event of a spool.
type Event interface {
	Lane() string // of the events that are stored in order
}

// Inserted is the result for an event that was to be stored.
type Inserted struct {
	IsNew bool
	Err   error // it is stored later
}

// Meaning classifies the errors of a [Sink].
type Meaning int

// The meanings of errors.
const (
	Unclear     Meaning = iota
	Closed              // nothing is stored any more, in this process
	Unavailable         // nothing is stored now
	Held                // one of the events cannot be stored now
	Refused             // one of the events is never to be stored
)
