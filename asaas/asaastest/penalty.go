package asaastest

import "slices"

// expire deletes events that have waited too long.
func (f *Fake) expire(w *webhook) {
	for _, p := range slices.Clone(w.queue) {
		if !p.queued.Add(retention).After(f.now) {
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
	w.forgive(f.now)
	f.record(w, nil, Entry{Kind: Resumed})
}

func (f *Fake) removeBackoff(w *webhook) {
	w.forgive(f.now)
	f.record(w, nil, Entry{Kind: BackoffRemoved})
}

// succeeded and failed end an attempt; e says how it was answered.
func (f *Fake) succeeded(w *webhook, p *pending, e Entry) {
	w.failures = 0
	w.remove(p)
	e.Kind = Delivered
	f.record(w, p, e)
}

func (f *Fake) failed(w *webhook, p *pending, e Entry) {
	w.failures++
	p.failures++
	inRow := w.failures
	if w.perEvent(f.Counting) {
		inRow = p.failures
	}
	paused := inRow >= maxFailures && !w.Interrupted
	w.Interrupted = w.Interrupted || paused
	p.due = f.now.Add(f.Schedule[min(p.failures, maxFailures-1)])
	if !w.Interrupted {
		e.Next = p.due
	}
	e.Kind = Failed
	f.record(w, p, e)
	if isEmail(inRow) {
		f.record(w, p, Entry{Kind: Emailed})
	}
	if paused {
		f.record(w, nil, Entry{Kind: Paused})
	}
}
