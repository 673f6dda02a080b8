package zeltapaytest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
)

// Settle does all that is due now, and all that becomes due by that. No time passes.
func (f *Fake) Settle() { f.Advance(0) }

// Advance moves the clock on, and does all that falls due on the way in the order of its time: at one moment in the
// order in which the events were emitted. It returns when the last delivery is answered. After 24 hours no event
// waits for a retry any more.
//
// It panics for a negative time, and while another Advance or Settle is at work, as when a receiver calls it.
func (f *Fake) Advance(d time.Duration) { f.core.Advance(d, f.next) }

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

// phase is the reason for which an event waits until it is due.
type phase int

const (
	waiting phase = iota // for its next attempt
	aging                // for the end of its Lifetime
	dead                 // in the dead-letter queue, for its deletion
)

// next is the first event that is due.
func (f *Fake) next() (at time.Time, what func() (deliver func())) {
	var first *pending
	for _, p := range f.pending {
		if first == nil || p.due.Before(first.due) {
			first = p
		}
	}
	if first == nil {
		return at, nil
	}
	return first.due, func() func() { return f.step(first) }
}

func (f *Fake) step(p *pending) (deliver func()) {
	switch p.phase {
	case aging:
		f.park(p, ReasonTooOld)
	case dead:
		f.remove(p)
		f.record(p, Entry{Kind: Deleted})
	default:
		return f.attempt(p)
	}
	return nil
}

// attempt delivers an event, or the one that overtakes it.
func (f *Fake) attempt(p *pending) (deliver func()) {
	fault := f.faults.Next()
	if fault.has(Swap) {
		p = f.overtaking(p)
	}
	if p.attempts == 0 {
		p.first = f.core.Time()
	}
	p.attempts++
	return func() {
		at := f.signingTime(p)
		request := func(ctx context.Context) (*http.Request, error) { return f.request(ctx, p, fault, at) }
		replies := f.core.Deliver(f.core.Receiver(p.webhook.Handler), fixture.Fault(fault), request)
		f.core.Change(func() { f.conclude(p, fault, replies) })
	}
}

// overtaking returns another event that is due now; p if there is none.
func (f *Fake) overtaking(p *pending) *pending {
	for _, other := range f.pending {
		if other != p && other.phase == waiting && !other.due.After(f.core.Time()) {
			return other
		}
	}
	return p
}

func (f *Fake) signingTime(p *pending) time.Time {
	if p.signed.IsZero() || !f.SignOnce {
		now := f.Now
		if f.SigningTime != nil {
			now = f.SigningTime
		}
		p.signed = now()
	}
	return p.signed
}

func (f *Fake) request(ctx context.Context, p *pending, fault Fault, signed time.Time) (*http.Request, error) {
	attempt := strconv.Itoa(f.FirstAttempt + p.attempts - 1)
	r, err := fixture.NewRequest(ctx, p.webhook.URL, p.body, "Content-Type", "application/json", headerAttempt, attempt)
	if err != nil {
		return nil, err
	}
	f.sign(r.Header, p, fault, signed)
	r.Header.Set(headerEventID, p.id)
	contradict(r.Header, fault)
	return r, nil
}

// contradict makes unsigned headers differ from the signed body.
func contradict(h http.Header, fault Fault) {
	if fault.has(OtherEventID) {
		h.Set(headerEventID, newID())
	}
	if fault.has(OtherEventType) {
		h.Set(headerEventType, "payment.other")
	}
	if fault.has(OtherTimestamp) {
		h.Set(headerTimestamp, h.Get(headerTimestamp)+"000") // as milliseconds
	}
}

func (f *Fake) sign(h http.Header, p *pending, fault Fault, at time.Time) {
	secret := p.webhook.Secret
	if fault.has(WrongSecret) {
		secret = "not " + secret
	}
	if fault.has(Stale) {
		at = at.Add(-time.Hour)
	}
	f.Format.Sign(h, p.body, secret, at)
	if f.BareSignature {
		_, digits, _ := strings.Cut(h.Get(headerSignature), "v1=")
		h.Set(headerSignature, digits)
	}
}

// conclude lets the first answer decide, and takes down those to the copies.
func (f *Fake) conclude(p *pending, fault Fault, replies []fixture.Reply) {
	reason := f.decide(p, fault, replies[0])
	for _, r := range replies[1:] {
		f.record(p, entry(Copied, fault, r))
	}
	if reason != "" {
		f.park(p, reason)
	}
}

// decide lets an answer decide. An event that is to go to the dead-letter queue has a reason.
func (f *Fake) decide(p *pending, fault Fault, r fixture.Reply) (parked Reason) {
	verdict := Retry
	if r.Error == "" {
		verdict = f.Judge(r.Status)
	}
	if verdict == Accept {
		f.remove(p)
		f.record(p, entry(Delivered, fault, r))
		return ""
	}
	e := entry(Failed, fault, r)
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
	next, end := f.core.Time().Add(delay), p.first.Add(f.Lifetime)
	if next.After(end) {
		p.phase, p.due = aging, end
		return time.Time{}
	}
	p.due = next
	return next
}

func (f *Fake) remove(p *pending) {
	f.pending = slices.DeleteFunc(f.pending, func(q *pending) bool { return q == p })
}

func entry(k Kind, fault Fault, r fixture.Reply) Entry {
	return Entry{Kind: k, Status: r.Status, Answer: r.Body, Error: r.Error, Fault: fault}
}

// record completes an entry.
func (f *Fake) record(p *pending, e Entry) {
	e.At, e.URL, e.EventID, e.EventType, e.Attempt = f.core.Time(), p.webhook.URL, p.id, p.kind, p.attempts
	f.core.Record(e)
}
