package zeltapaytest

import "time"

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
