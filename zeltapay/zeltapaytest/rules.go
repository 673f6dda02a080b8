package zeltapaytest

import (
	"bytes"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
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

// retention is the time that an event stays in the dead-letter queue.
const retention = 30 * 24 * time.Hour

// DeadLetter is an event in the dead-letter queue.
type DeadLetter struct {
	URL       string // of the webhook
	EventID   string // as in Zeltapay-Event-Id
	EventType zeltapay.EventType
	Body      []byte
	Reason    Reason
	Attempts  int       // made so far
	Since     time.Time // when it came here first
	Until     time.Time // when it is deleted: 30 days later
}

// DeadLetters is the dead-letter queue, in the order in which the events were emitted.
func (f *Fake) DeadLetters() []DeadLetter {
	f.core.Lock()
	defer f.core.Unlock()
	var out []DeadLetter
	for _, p := range f.pending {
		if p.phase == dead {
			out = append(out, p.letter())
		}
	}
	return out
}

func (p *pending) letter() DeadLetter {
	return DeadLetter{
		URL: p.webhook.URL, EventID: p.id, EventType: p.kind, Body: bytes.Clone(p.body),
		Reason: p.reason, Attempts: p.attempts, Since: p.parked, Until: p.parked.Add(retention),
	}
}

// Replay delivers an event of the dead-letter queue again, with the same id, like a person in Zelta Pay's dashboard.
// It is due at once; Settle delivers it. It returns false if no such event is in the queue.
//
// The fate of a failed replay is not documented. Here it is not retried, and the event goes back to the queue
// for the rest of its 30 days.
func (f *Fake) Replay(eventID string) bool {
	return f.replay(func(p *pending) bool { return p.id == eventID }) > 0
}

// ReplayAll is [Fake.Replay] for the whole queue, and returns how many events were in it. Whether Zelta Pay's
// dashboard can do that is not known.
func (f *Fake) ReplayAll() int {
	return f.replay(func(*pending) bool { return true })
}

func (f *Fake) replay(wanted func(*pending) bool) (n int) {
	f.core.Change(func() {
		for _, p := range f.pending {
			if p.phase == dead && wanted(p) {
				p.phase, p.due, p.replayed = waiting, f.core.Time(), true
				f.record(p, Entry{Kind: Replayed})
				n++
			}
		}
	})
	return n
}

// park moves an event to the dead-letter queue.
func (f *Fake) park(p *pending, why Reason) {
	if p.parked.IsZero() {
		p.parked = f.core.Time()
	}
	p.phase, p.reason, p.due = dead, why, p.parked.Add(retention)
	f.record(p, Entry{Kind: DeadLettered, Reason: why})
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
