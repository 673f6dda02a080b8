package zeltapaytest

import (
	"bytes"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

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
		if p.dead {
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
			if p.dead && wanted(p) {
				p.dead, p.due, p.replayed = false, f.core.Time(), true
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
	p.dead, p.reason, p.due = true, why, p.parked.Add(retention)
	f.record(p, Entry{Kind: DeadLettered, Reason: why})
}

// Reason is the cause for which an event is in the dead-letter queue.
type Reason string

// The ways into the dead-letter queue.
const (
	ReasonRejected Reason = "the answer is not retried"
	ReasonGivenUp  Reason = "all retries failed"
	ReasonReplay   Reason = "the replay failed"
)
