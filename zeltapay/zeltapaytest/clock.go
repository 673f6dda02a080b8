package zeltapaytest

import (
	"bytes"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

// Settle does all that is due now, and all that becomes due by that. No time passes.
func (f *Fake) Settle() { f.Advance(0) }

// Advance moves the clock on, and does all that falls due on the way in the order of its time: at one moment in the
// order in which the events were emitted. It returns when the last delivery is answered. After 24 hours no event
// waits for a retry any more.
//
// It panics for a negative time, and while another Advance or Settle is at work, as when a receiver calls it.
func (f *Fake) Advance(d time.Duration) {
	if err := f.mover.Move(d, func() { f.moveTo(f.Now().Add(d)) }); err != nil {
		panic("zeltapaytest: " + err.Error())
	}
}

func (f *Fake) moveTo(end time.Time) {
	for f.ctx.Err() == nil {
		p := f.next(end)
		if p == nil {
			return
		}
		f.step(p)
	}
}

// next moves the clock to the first event that is due, and returns it; or else to end.
func (f *Fake) next(end time.Time) *pending {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	var first *pending
	for _, p := range f.pending {
		if !p.due.After(end) && (first == nil || p.due.Before(first.due)) {
			first = p
		}
	}
	to := end
	if first != nil {
		to = first.due
	}
	f.passed = max(f.passed, to.Sub(f.Start))
	return first
}

func (f *Fake) step(p *pending) {
	switch p.phase {
	case waiting:
		f.attempt(p)
	case aging:
		f.change(func() { f.park(p, ReasonTooOld) })
	case dead:
		f.change(func() {
			f.remove(p)
			f.record(p, Entry{Kind: Deleted})
		})
	}
}

// attempt delivers an event, or the one that overtakes it.
func (f *Fake) attempt(p *pending) {
	var fault Fault
	f.change(func() {
		fault = f.faults.Next()
		if fault.has(Swap) {
			p = f.overtaking(p)
		}
		if p.attempts == 0 {
			p.first = f.now()
		}
		p.attempts++
	})
	answers := f.deliver(p, fault)
	f.change(func() {
		reason := f.conclude(p, fault, answers[0])
		for _, a := range answers[1:] {
			f.record(p, a.entry(Copied, fault))
		}
		if reason != "" {
			f.park(p, reason)
		}
	})
}

// overtaking returns another event that is due now; p if there is none.
func (f *Fake) overtaking(p *pending) *pending {
	for _, other := range f.pending {
		if other != p && other.phase == waiting && !other.due.After(f.now()) {
			return other
		}
	}
	return p
}

// conclude lets an answer decide. An event that is to go to the dead-letter queue has a reason.
func (f *Fake) conclude(p *pending, fault Fault, a answer) (parked Reason) {
	verdict := Retry
	if a.err == nil {
		verdict = f.Judge(a.status)
	}
	if verdict == Accept {
		f.remove(p)
		f.record(p, a.entry(Delivered, fault))
		return ""
	}
	e := a.entry(Failed, fault)
	switch {
	case verdict == Park:
		parked = ReasonRejected
	case p.replayed:
		parked = ReasonReplay
	case p.attempts > len(f.Delays):
		parked = ReasonGivenUp
	default:
		e.Next = f.retry(p)
	}
	f.record(p, e)
	return parked
}

// retry sets when an event is due again. It returns the zero time when that is only to be given up.
func (f *Fake) retry(p *pending) (next time.Time) {
	delay := f.Delays[p.attempts-1]
	if f.Jitter != nil {
		delay = time.Duration(float64(delay) * f.Jitter())
	}
	next, end := f.now().Add(delay), p.first.Add(f.Lifetime)
	if next.After(end) {
		p.phase, p.due = aging, end
		return time.Time{}
	}
	p.due = next
	return next
}

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
	f.timeline.Lock()
	defer f.timeline.Unlock()
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
	f.change(func() {
		for _, p := range f.pending {
			if p.phase == dead && wanted(p) {
				p.phase, p.due, p.replayed = waiting, f.now(), true
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
		p.parked = f.now()
	}
	p.phase, p.reason, p.due = dead, why, p.parked.Add(retention)
	f.record(p, Entry{Kind: DeadLettered, Reason: why})
}

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
