package zeltapaytest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
)

// Settle does all that is due now, and all that becomes due by that. No time passes.
func (f *Fake) Settle() { f.Advance(0) }

// Advance moves the clock on, and does all that falls due on the way in the order of its time: at one moment in the
// order in which the events were emitted. It returns when the last delivery is answered.
//
// It panics for a negative time, and while another Advance or Settle is at work, as when a receiver calls it.
func (f *Fake) Advance(d time.Duration) { f.core.Advance(d, f.next) }

// pending is an event that one webhook has not taken yet.
type pending struct {
	webhook  *Webhook
	id       string
	kind     zeltapay.EventType
	body     []byte
	due      time.Time // its next attempt or, in the dead-letter queue, its deletion
	attempts int
	replayed bool
	dead     bool // it is in the dead-letter queue
	reason   Reason
	parked   time.Time // when it came to the dead-letter queue first
}

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
	if p.dead {
		f.remove(p)
		f.record(p, Entry{Kind: Deleted})
		return nil
	}
	fault := f.faults.Next()
	if fault.has(Swap) {
		p = f.overtaking(p)
	}
	p.attempts++
	return func() {
		request := func(ctx context.Context) (*http.Request, error) { return f.request(ctx, p, fault) }
		replies := f.core.Deliver(f.core.Receiver(p.webhook.Handler), fixture.Fault(fault), request)
		f.core.Change(func() { f.conclude(p, fault, replies) })
	}
}

// overtaking returns another event that is due now; p if there is none.
func (f *Fake) overtaking(p *pending) *pending {
	for _, other := range f.pending {
		if other != p && !other.dead && !other.due.After(f.core.Time()) {
			return other
		}
	}
	return p
}

// request is signed anew, with its own time, which is assumed: Zelta Pay does not say it, and a single signature would
// have late retries refused.
func (f *Fake) request(ctx context.Context, p *pending, fault Fault) (*http.Request, error) {
	r, err := fixture.NewRequest(ctx, p.webhook.URL, p.body, "Content-Type", "application/json", headerAttempt, strconv.Itoa(p.attempts))
	if err != nil {
		return nil, err
	}
	secret, now := p.webhook.Secret, f.Now
	if fault.has(WrongSecret) {
		secret = "not " + secret
	}
	if f.SigningTime != nil {
		now = f.SigningTime
	}
	at := now()
	if fault.has(Stale) {
		at = at.Add(-time.Hour)
	}
	f.Format.Sign(r.Header, p.body, secret, at)
	r.Header.Set(headerEventID, p.id)
	return r, nil
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

// decide lets an answer decide: any 2xx accepts the event, 408, 429 and any 5xx have it retried, every other 4xx parks it.
// An event that is to go to the dead-letter queue has a reason.
//
// Zelta Pay does not say the meaning of a 3xx, nor of a connection that fails. Here both are retried. One page lists 200,
// 201, 202 and 204 instead of any 2xx.
func (f *Fake) decide(p *pending, fault Fault, r fixture.Reply) (parked Reason) {
	if r.Error == "" && r.Status/100 == 2 {
		f.remove(p)
		f.record(p, entry(Delivered, fault, r))
		return ""
	}
	e := entry(Failed, fault, r)
	switch {
	case r.Error == "" && r.Status/100 == 4 && r.Status != http.StatusRequestTimeout && r.Status != http.StatusTooManyRequests:
		parked = ReasonRejected
	case p.replayed:
		parked = ReasonReplay
	case p.attempts > len(f.Delays):
		parked = ReasonGivenUp
	default:
		p.due = f.core.Time().Add(f.Delays[p.attempts-1])
		e.Next = p.due
	}
	f.record(p, e)
	return parked
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
