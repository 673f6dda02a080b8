package idem

import "github.com/paghooks/paghooks/idem/internal/store"

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
