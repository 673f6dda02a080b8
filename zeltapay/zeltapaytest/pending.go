package zeltapaytest

import (
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

// phase is the reason for which an event waits until it is due.
type phase int

const (
	waiting phase = iota // for its next attempt
	aging                // for the end of its Lifetime
	dead                 // in the dead-letter queue, for its deletion
)

// pending is an event that one webhook has not taken yet.
type pending struct {
	webhook  *Webhook
	id       string
	kind     zeltapay.EventType
	body     []byte
	phase    phase
	due      time.Time
	attempts int
	first    time.Time // of the attempts
	signed   time.Time // the time in the signature of the first of them
	replayed bool
	reason   Reason
	parked   time.Time // when it came to the dead-letter queue first
}

// Reason is the cause for which an event is in the dead-letter queue.
type Reason string

// The ways into the dead-letter queue.
const (
	ReasonRejected Reason = "the answer is not retried"
	ReasonGivenUp  Reason = "all retries failed"
	ReasonTooOld   Reason = "no time is left to retry" // see the Lifetime of [Fake]
	ReasonReplay   Reason = "the replay failed"
)
