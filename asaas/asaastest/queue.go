package asaastest

import (
	"slices"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// retention is the time that an event stays in a queue.
const retention = 14 * 24 * time.Hour

// webhook is a webhook with its queue.
type webhook struct {
	Webhook
	receiver *receiver
	queue    []*pending
	failures int // in a row
}

// pending is an event in a queue.
type pending struct {
	event       event
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

// ready returns the events to send now.
func (w *webhook) ready(now time.Time, parallelism int) []*pending {
	var out []*pending
	for _, p := range w.open() {
		if !p.due.After(now) && len(out) < max(parallelism, 1) {
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

// remove takes an event out of the queue, and reports whether it was there.
func (w *webhook) remove(p *pending) bool {
	before := len(w.queue)
	w.queue = slices.DeleteFunc(w.queue, func(q *pending) bool { return q == p })
	return len(w.queue) < before
}

func (w *webhook) perEvent(c Counting) bool {
	return w.SendType == NonSequentially && c == PerEvent
}

func (w *webhook) penalized(c Counting) int {
	if !w.perEvent(c) {
		return w.failures
	}
	n := 0
	for _, p := range w.queue {
		n = max(n, p.failures)
	}
	return n
}

// forgive makes everything due, as if nothing had failed.
func (w *webhook) forgive(now time.Time) {
	w.failures = 0
	for _, p := range w.queue {
		p.failures = 0
		if p.due.After(now) {
			p.due = now
		}
	}
}

// event is an event as Asaas stores it.
type event struct {
	id   string
	kind asaas.EventType
	body []byte
}
