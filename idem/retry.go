package idem

import (
	"math/rand/v2"
	"time"

	"github.com/paghooks/paghooks/idem/internal/handling"
)

// NoRetry wraps the error of a handler: its event must not be tried again: it
// is parked immediately, with its payload, for Replay. A nil err stays nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &handling.Final{Err: err}
}

// RetryAt wraps the error of a handler: its event is not to be tried again
// before t, when a bank opens, say. In an [Inbox] that replaces Backoff for this
// time, and does not count towards MaxAttempts; unless t has passed, which counts
// and waits as any other failure does. A [Processor] does not decide when a
// provider delivers again: there it is an error like others. Package health is red once an event
// has been started more than ten times, and came longer than MaxRetrying ago. A nil err stays nil.
func RetryAt(t time.Time, err error) error {
	if err == nil {
		return nil
	}
	return &handling.Later{Err: err, At: t}
}

// DefaultBackoff waits a second after the first attempt, twice as long after
// each further one, and an hour at most, give or take a quarter: so that events that
// failed together do not come back together.
func DefaultBackoff(attempt int) time.Duration {
	d := min(time.Second<<min(max(attempt, 1)-1, 12), time.Hour)
	return d*3/4 + rand.N(d/2)
}
