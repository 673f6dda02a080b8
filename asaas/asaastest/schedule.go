package asaastest

import "time"

// RetrySchedule is Asaas's penalty for a receiver that fails: the wait before each
// attempt. Its first element is 0, and after the last attempt has failed, the
// queue is paused. Asaas does not say whether it counts the waits from one
// attempt to the next; the fake does.
type RetrySchedule [maxFailures]time.Duration

// maxFailures in a row pause a queue.
const maxFailures = 15

// The waits as Asaas's pages give them.
var (
	// PortugueseSchedule is of the current page in Portuguese: 12 h 50 min in all.
	// See https://docs.asaas.com/docs/penalização-de-filas.
	PortugueseSchedule = schedule(2*time.Hour, 2*time.Hour)

	// EnglishSchedule is of the page in English, 10 h 50 min in all: an hour before
	// the attempts 13 and 14 instead of two. See
	// https://docs.asaas.com/docs/queue-penalty.
	EnglishSchedule = schedule(time.Hour, time.Hour)

	// OlderSchedule is of a page that was not changed since: every 30 seconds. See
	// https://docs.asaas.com/docs/erro-read-timed-out.
	OlderSchedule = every(30 * time.Second)
)

// schedule holds the rules that the pages share, with the waits in which they differ.
func schedule(thirteenth, fourteenth time.Duration) RetrySchedule {
	const m, h = time.Minute, time.Hour
	return RetrySchedule{0, m / 2, m, 7 * m / 2, 5 * m, 15 * m, 25 * m, h, h, h, h, h, thirteenth, fourteenth, 3 * h}
}

func every(d time.Duration) (s RetrySchedule) {
	for i := range s[1:] {
		s[i+1] = d
	}
	return s
}

// isEmail reports whether Asaas writes an e-mail after so many failures in a row.
// The last of the three says that the queue is paused.
func isEmail(failures int) bool {
	return failures == 5 || failures == 10 || failures == maxFailures
}

// Counting is a way to count the failures of a NON_SEQUENTIALLY webhook.
type Counting int

// The ways to count failures. With several events in flight they differ; a
// SEQUENTIALLY webhook has one.
const (
	// PerEvent pauses when one event failed 15 times, independent of other events.
	PerEvent Counting = iota
	// PerWebhook pauses after 15 failures in a row of any events. A success
	// starts the count again.
	PerWebhook
)
