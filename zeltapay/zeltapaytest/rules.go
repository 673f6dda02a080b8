package zeltapaytest

import (
	"net/http"
	"time"
)

// TableDelays are the delays of Zelta Pay's table: 5, 10, 20, 40, 80 and 160 seconds. They are over after 5 minutes
// and 15 seconds, though the same page says that retries go on over 24 hours.
//
// It also says "6 attempts", and elsewhere "6 retry attempts" after the first: TableDelays()[:5] makes six in all.
func TableDelays() []time.Duration { return doubled(5 * time.Second) }

// SampleDelays are those that Zelta Pay's sample code computes: 10, 20, 40, 80, 160 and 320 seconds.
func SampleDelays() []time.Duration { return doubled(10 * time.Second) }

// DayDelays are the delays of the table stretched to the 24 hours that the text speaks of: 22m51s first, then doubled
// up to 12h11m. No page has these numbers.
func DayDelays() []time.Duration { return doubled(24 * time.Hour / (1 + 2 + 4 + 8 + 16 + 32)) }

func doubled(first time.Duration) []time.Duration {
	delays := make([]time.Duration, 6)
	for i := range delays {
		delays[i] = first << i
	}
	return delays
}

// Verdict is the meaning of an answer for its event.
type Verdict int

// The meanings of an answer.
const (
	Accept Verdict = iota // it is done
	Retry                 // it is delivered again after a delay
	Park                  // it goes to the dead-letter queue at once
)

// Judge is Zelta Pay's rule: any 2xx accepts the event, 408, 429 and any 5xx have it retried, every other 4xx parks it.
// An answer that does not come in time is retried too, for any Judge.
//
// Zelta Pay does not say the meaning of a 3xx, nor a connection that fails. Here both are retried, and no redirect is
// followed.
func Judge(status int) Verdict {
	switch {
	case status >= 200 && status <= 299:
		return Accept
	case status >= 400 && status <= 499 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		return Park
	}
	return Retry
}

// JudgeListed is [Judge] by the page that lists the answers that accept an event: 200, 201, 202 and 204. That any other 2xx is
// retried is assumed.
func JudgeListed(status int) Verdict {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return Accept
	}
	if verdict := Judge(status); verdict != Accept {
		return verdict
	}
	return Retry
}
