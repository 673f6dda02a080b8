package zeltapaytest

import (
	"time"
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
