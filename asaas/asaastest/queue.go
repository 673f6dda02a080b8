package asaastest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Settle delivers all events that are due now, and those that become due by that. No time
// passes.
func (f *Fake) Settle() { f.Advance(0) }

// Advance moves the clock on, and does all that falls due on the way in the
// order of its time: at one moment webhook by webhook, in the order in which
// they were added. It returns when the last delivery is answered.
//
// It panics for a negative time, and while another Advance or Settle is at
// work, as when a receiver calls it.
func (f *Fake) Advance(d time.Duration) { f.core.Advance(d, f.next) }

// webhook is a webhook with its queue.
type webhook struct {
	Webhook
	of    *account
	queue []*pending
}

// pending is an event in a queue.
type pending struct {
	event       idem.Event
	order       int // among all that was ever queued
	queued, due time.Time
	attempts    int
	failures    int // in a row
}

func (w *webhook) subscribes(kind asaas.EventType) bool {
	return w.Events == nil || slices.Contains(w.Events, kind)
}

// open returns the events that may be sent as soon as they are due.
func (w *webhook) open() []*pending {
	switch {
	case w.Disabled, w.Interrupted, len(w.queue) == 0:
		return nil
	case w.SendType == Sequentially:
		return w.queue[:1]
	}
	return w.queue
}

// next is when the queue does something by itself; the zero time for never.
func (w *webhook) next() (at time.Time) {
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, p := range w.queue {
		earlier(p.queued.Add(retention))
	}
	for _, p := range w.open() {
		earlier(p.due)
	}
	return at
}

// parallelism is the number of events of a NON_SEQUENTIALLY webhook that are delivered at once. Asaas says no number.
const parallelism = 10

// ready returns the events to send now.
func (w *webhook) ready(now time.Time) []*pending {
	var out []*pending
	for _, p := range w.open() {
		if !p.due.After(now) && len(out) < parallelism {
			out = append(out, p)
		}
	}
	return out
}

// overtake lets the second event go first, if events have an order.
func (w *webhook) overtake() *pending {
	if w.SendType == Sequentially && len(w.queue) > 1 {
		w.queue[0], w.queue[1] = w.queue[1], w.queue[0]
	}
	return w.queue[0]
}

func (w *webhook) remove(p *pending) {
	w.queue = slices.DeleteFunc(w.queue, func(q *pending) bool { return q == p })
}

// penalized is the number of failures in a row, of the event that has most: where events have an order, of the first.
func (w *webhook) penalized() (n int) {
	for _, p := range w.queue {
		n = max(n, p.failures)
	}
	return n
}

// forgive makes everything due, as if nothing had failed.
func (w *webhook) forgive(now time.Time) {
	for _, p := range w.queue {
		p.failures = 0
		if p.due.After(now) {
			p.due = now
		}
	}
}

func newEvent(body []byte) idem.Event {
	e := asaas.Identify(slices.Clone(body))
	if e.Type == "" {
		panic("asaastest: the body is no event: make it with asaastest.Event or asaastest.Sparse")
	}
	return e
}

// accountIn returns the account.id of an event.
func accountIn(e idem.Event) string {
	var said struct{ Account asaas.Account }
	_ = json.Unmarshal(e.Payload, &said) // an account of another form is none of ours
	return said.Account.ID.Or("")
}

// enqueue queues an event of an account.
func (f *Fake) enqueue(of *account, e idem.Event) {
	for _, w := range f.webhooksOf(of) {
		if w.Disabled || !w.subscribes(asaas.EventType(e.Type)) {
			continue
		}
		f.queued++
		p := &pending{event: e, order: f.queued, queued: f.core.Time(), due: f.core.Time()}
		w.queue = append(w.queue, p)
		f.record(w, p, Entry{Kind: Queued})
	}
}

// retention is the time that an event stays in a queue.
const retention = 14 * 24 * time.Hour

// next returns the next step of all queues, and its time.
func (f *Fake) next() (at time.Time, what func() (deliver func())) {
	var first *webhook
	for _, w := range f.webhooks {
		next := w.next()
		if next.IsZero() {
			continue
		}
		if now := f.core.Time(); next.Before(now) {
			next = now
		}
		if first == nil || next.Before(at) {
			first, at = w, next
		}
	}
	if first == nil {
		return at, nil
	}
	return at, func() func() { return f.step(first) }
}

func (f *Fake) step(w *webhook) (deliver func()) {
	f.expire(w)
	var due []*delivery
	for _, p := range w.ready(f.core.Time()) {
		due = append(due, f.newDelivery(w, p))
	}
	return func() { f.deliver(due) }
}

// delivery is one attempt, and its result.
type delivery struct {
	webhook *webhook
	event   *pending
	fault   Fault
	config  Webhook         // when the attempt began
	replies []fixture.Reply // to the copies; the first counts
}

func (f *Fake) newDelivery(w *webhook, p *pending) *delivery {
	fault := f.faults.Next()
	if fault.has(Swap) && w.SendType == Sequentially {
		p = w.overtake()
	}
	p.attempts++
	d := &delivery{webhook: w, event: p, fault: fault, config: w.Webhook}
	if fault.has(WrongToken) {
		d.config.Token = "not-the-token-of-this-webhook"
	}
	return d
}

// deliver carries attempts out, all at once, and takes the answers down in the order of the queue.
func (f *Fake) deliver(due []*delivery) {
	var attempts sync.WaitGroup
	for _, d := range due {
		attempts.Go(func() {
			d.replies = f.core.Deliver(f.core.Receiver(d.config.Handler), fixture.Fault(d.fault), d.request)
		})
	}
	attempts.Wait()
	f.core.Change(func() {
		for _, d := range due {
			f.count(d)
			for _, r := range d.replies[1:] {
				f.record(d.webhook, d.event, d.entry(Copied, r))
			}
		}
	})
}

// request is a request as Asaas was seen to send it.
func (d *delivery) request(ctx context.Context) (*http.Request, error) {
	body, contentType := d.event.event.Payload, "application/json"
	if d.config.APIVersion == 2 {
		body = []byte(url.Values{"data": {string(body)}}.Encode())
		contentType = "application/x-www-form-urlencoded; charset=UTF-8"
	}
	header := []string{
		"Content-Type", contentType, "Accept", "application/json", "Accept-Encoding", "gzip", "User-Agent", fmt.Sprintf("Asaas_Hmlg/%d.0", d.config.APIVersion),
		"Cache-Control", "no-cache", "Pragma", "no-cache",
	}
	if d.config.Token != "" && d.config.APIVersion != 2 {
		header = append(header, asaas.TokenHeader, d.config.Token)
	}
	return fixture.NewRequest(ctx, d.config.URL, body, header...)
}

// count lets the first answer count.
func (f *Fake) count(d *delivery) {
	w, p, r := d.webhook, d.event, d.replies[0]
	if r.Error == "" && r.Status == http.StatusOK {
		w.remove(p)
		f.record(w, p, d.entry(Delivered, r))
		return
	}
	f.failed(w, p, d.entry(Failed, r))
}

func (d *delivery) entry(k Kind, r fixture.Reply) Entry {
	return Entry{Kind: k, Status: r.Status, Answer: r.Body, Error: r.Error, Fault: d.fault}
}

func (f *Fake) failed(w *webhook, p *pending, e Entry) {
	p.failures++
	paused := p.failures >= maxFailures && !w.Interrupted
	w.Interrupted = w.Interrupted || paused
	p.due = f.core.Time().Add(waits[min(p.failures, maxFailures-1)])
	if !w.Interrupted {
		e.Next = p.due
	}
	f.record(w, p, e)
	if isEmail(p.failures) {
		f.record(w, p, Entry{Kind: Emailed})
	}
	if paused {
		f.record(w, nil, Entry{Kind: Paused})
	}
}

// expire deletes events that have waited too long.
func (f *Fake) expire(w *webhook) {
	for _, p := range slices.Clone(w.queue) {
		if !p.queued.Add(retention).After(f.core.Time()) {
			w.remove(p)
			f.record(w, p, Entry{Kind: Deleted})
		}
	}
}

func (f *Fake) setInterrupted(w *webhook, interrupted bool) {
	if w.Interrupted == interrupted {
		return
	}
	w.Interrupted = interrupted
	if interrupted {
		f.record(w, nil, Entry{Kind: Paused})
		return
	}
	// An event that another overtook goes back to its place.
	slices.SortFunc(w.queue, func(a, b *pending) int { return a.order - b.order })
	w.forgive(f.core.Time())
	f.record(w, nil, Entry{Kind: Resumed})
}

func (f *Fake) removeBackoff(w *webhook) {
	w.forgive(f.core.Time())
	f.record(w, nil, Entry{Kind: BackoffRemoved})
}

// record completes an entry; p is nil where it is about the queue.
func (f *Fake) record(w *webhook, p *pending, e Entry) {
	e.At, e.WebhookID = f.core.Time(), w.ID
	if p != nil {
		e.EventID, e.EventType, e.Attempt = p.event.ID, asaas.EventType(p.event.Type), p.attempts
	}
	f.core.Record(e)
}
