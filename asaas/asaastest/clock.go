package asaastest

import "time"

// Settle delivers all events that are due now, and those that become due by that. No time
// passes.
func (f *Fake) Settle() { f.Advance(0) }

// Advance moves the clock on, and does all that falls due on the way in the
// order of its time: at one moment webhook by webhook, in the order in which
// they were added. It returns when the last delivery is answered.
//
// It panics for a negative time, and while another Advance or Settle is at
// work, as when a receiver calls it.
func (f *Fake) Advance(d time.Duration) {
	if err := f.mover.Move(d, func() { f.moveTo(f.Now().Add(d)) }); err != nil {
		panic("asaastest: " + err.Error())
	}
}

func (f *Fake) moveTo(end time.Time) {
	for f.ctx.Err() == nil {
		due, more := f.pick(end)
		if !more {
			return
		}
		f.deliver(due)
		f.conclude(due)
	}
}

// pick moves the clock to the first thing that happens, at most to end. It returns the
// deliveries that are due then, of one webhook; they may be none.
func (f *Fake) pick(end time.Time) (due []*delivery, more bool) {
	f.change(func() {
		w, at := f.first()
		if w == nil || at.After(end) {
			f.now = end
			return
		}
		more = true
		if at.After(f.now) {
			f.now = at
		}
		f.expire(w)
		for _, p := range w.ready(f.now, f.Parallelism) {
			due = append(due, f.newDelivery(w, p))
		}
	})
	return due, more
}

// first returns the webhook with the queue that does something first, and when.
func (f *Fake) first() (first *webhook, at time.Time) {
	for _, w := range f.webhooks {
		next := w.next()
		if next.IsZero() {
			continue
		}
		if next.Before(f.now) {
			next = f.now
		}
		if first == nil || next.Before(at) {
			first, at = w, next
		}
	}
	return first, at
}
