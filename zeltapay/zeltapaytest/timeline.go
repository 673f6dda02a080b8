package zeltapaytest

import (
	"cmp"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
)

// Kind names the subject of an [Entry].
type Kind string

// The kinds of entries.
const (
	// Queued: it happened, and the webhook subscribes to it.
	Queued Kind = "queued"
	// Delivered: an attempt was answered with success, the event is done.
	Delivered Kind = "delivered"
	// Failed: an attempt was not answered with success.
	Failed Kind = "failed"
	// Copied: the second copy that [Concurrent] or [Duplicate] sent was answered. It counts neither as success nor as
	// failure.
	Copied Kind = "copied"
	// DeadLettered: it went to the dead-letter queue.
	DeadLettered Kind = "dead-lettered"
	// Replayed: somebody wants it out of there, and it is due.
	Replayed Kind = "replayed"
	// Deleted: it was in the dead-letter queue for 30 days, and is gone for good.
	Deleted Kind = "deleted"
)

// Entry is one thing that happened to an event of a webhook.
type Entry struct {
	At        time.Time // in the fake's time
	Kind      Kind
	URL       string // of the webhook
	EventID   string // as in Zeltapay-Event-Id
	EventType zeltapay.EventType

	Attempt int       // from 1, for any FirstAttempt; goes on in replays
	Status  int       // of the receiver's answer; 0 without one
	Answer  string    // the answer's body, its first 4 KiB
	Error   string    // why there is no answer, or none that counts
	Fault   Fault     // the fault that the test injected
	Next    time.Time // when Failed: of the next attempt; zero if there is none
	Reason  Reason    // when DeadLettered
}

// String is a line for people: "2026-08-08 23:45:13 failed payment.success evt_1, attempt 1: 503, next in 5s".
func (e Entry) String() string {
	return fixture.Entry{
		At: e.At, Kind: string(e.Kind), EventType: string(e.EventType), EventID: e.EventID,
		Attempt: e.Attempt, Status: e.Status, Error: cmp.Or(e.Error, string(e.Reason)), Next: e.Next,
	}.String()
}
