package asaastest

import (
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Kind names the subject of an [Entry].
type Kind string

// The kinds of entries.
const (
	// Queued: an event happened, and the webhook subscribes to it.
	Queued Kind = "queued"
	// Delivered: an attempt was answered with success, the event is done.
	Delivered Kind = "delivered"
	// Failed: an attempt was not answered with success.
	Failed Kind = "failed"
	// Copied: the second copy that [Concurrent] or [Duplicate] sent was answered. It
	// counts neither as success nor as failure.
	Copied Kind = "copied"
	// Emailed: Asaas wrote to the webhook's e-mail address.
	Emailed Kind = "emailed"
	// Paused: the queue stops after 15 failures in a row, or because somebody
	// interrupted it through the API.
	Paused Kind = "paused"
	// Resumed: somebody reactivated the queue, and all in it is due.
	Resumed Kind = "resumed"
	// BackoffRemoved: somebody removed the penalty, and all in the queue is due.
	BackoffRemoved Kind = "backoff removed"
	// Deleted: an event waited for 14 days, and is gone for good.
	Deleted Kind = "deleted"
)

// Entry is one thing that happened in a webhook's queue.
type Entry struct {
	At        time.Time // in the fake's time
	Kind      Kind
	WebhookID string
	EventID   string // "" where it is about the queue
	EventType asaas.EventType

	Attempt int       // from 1; goes on after Resumed
	Status  int       // of the receiver's answer; 0 without one
	Answer  string    // the answer's body, its first 4 KiB
	Error   string    // why there is no answer, or none that counts
	Fault   Fault     // the fault that the test injected
	Next    time.Time // when Failed: of the next attempt; zero if the queue is paused
}

// String is a line for people: "2026-08-08 23:45:13 failed PAYMENT_RECEIVED
// evt_1, attempt 1: 503, next in 30s".
func (e Entry) String() string {
	return fixture.Entry{
		At: e.At, Kind: string(e.Kind), EventType: string(e.EventType), EventID: e.EventID,
		Attempt: e.Attempt, Status: e.Status, Error: e.Error, Next: e.Next,
	}.String()
}

// Fault is something that goes wrong with an attempt. Several go together:
// Concurrent|LostAnswer.
type Fault uint

// The faults of an attempt. A receiver's answer counts, unless it
// says otherwise here.
const (
	// Duplicate delivers the event a second time after the answer. The first
	// answer counts.
	Duplicate Fault = 1 << iota
	// Concurrent delivers two copies at the same moment. The answer to the first of
	// them counts.
	Concurrent
	// Swap lets the next event of a SEQUENTIALLY webhook go before this one.
	// The attempt is the next event's then. Alone in its queue, an event keeps
	// its place.
	Swap
	// LostAnswer throws the receiver's answer away: the receiver is done with the
	// event, and Asaas takes it for a failure.
	LostAnswer
	// SlowBody sends the request byte by byte.
	SlowBody
	// CutBody sends half of the body, and breaks the connection. No answer gets back.
	CutBody
	// WrongToken sends a token that is not the webhook's.
	WrongToken
)

func (f Fault) has(other Fault) bool { return f&other != 0 }

// maxFailures in a row pause a queue.
const maxFailures = 15

// waits are Asaas's penalty for a receiver that fails: the pause before each attempt, 12 h 50 min in all. After the last
// attempt has failed, the queue is paused. Asaas does not say whether it counts the waits from one attempt to the
// next; the fake does. See https://docs.asaas.com/docs/penalização-de-filas.
var waits = [maxFailures]time.Duration{
	0, 30 * time.Second, time.Minute, 210 * time.Second, 5 * time.Minute, 15 * time.Minute, 25 * time.Minute,
	time.Hour, time.Hour, time.Hour, time.Hour, time.Hour, 2 * time.Hour, 2 * time.Hour, 3 * time.Hour,
}

// isEmail reports whether Asaas writes an e-mail after so many failures in a row.
// The last of the three says that the queue is paused.
func isEmail(failures int) bool {
	return failures == 5 || failures == 10 || failures == maxFailures
}
