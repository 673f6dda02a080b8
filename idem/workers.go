package idem

import "context"

// work is one worker.
func (r *running) work() {
	for c := range r.claims {
		if !r.do(r.effort(c)) {
			return
		}
	}
}

// do works on a claim, and on those that follow it. If a handler hangs, it
// returns false: another worker goes on.
func (r *running) do(w *effort) bool {
	for ; w != nil; w = r.after(w) {
		if r.ending() {
			r.leave(w)
			continue
		}
		lost := false
		w.do(func() {
			lost = true
			go func() {
				if r.do(r.after(w)) {
					r.work()
				}
			}()
		})
		if lost {
			return false
		}
	}
	return true
}

// after is the work that follows w. If it was not begun with w's COMMIT, its time
// begins now.
func (r *running) after(w *effort) *effort {
	next := w.follows
	if next == nil || next.begun != nil {
		return next
	}
	next.cancel()
	return r.effort(next.claim)
}

// ending tells whether no further event is to begin.
func (r *running) ending() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// effort is the work on a claim, and on those that workers find waiting when it
// is committed.
func (r *running) effort(c *claim) *effort {
	w := r.inbox.effort(r.ctx, c, func(o Outcome) { r.settle(c, o) })
	w.next = func() *job {
		if w.follows == nil { // or this is another try of the same work
			w.follows = r.waiting()
		}
		if w.follows == nil {
			return nil
		}
		return &w.follows.job
	}
	return w
}

// waiting is the work on a claim that waits for a worker; nil if none does, or
// if it is to be given back: that takes a connection, and the worker holds one.
func (r *running) waiting() *effort {
	if r.ending() || !r.inbox.chains {
		return nil
	}
	select {
	case c := <-r.claims:
		if c != nil {
			return r.effort(c)
		}
	default:
	}
	return nil
}

// leave gives back an event that a worker has got, and whose handler is not to
// begin any more.
func (r *running) leave(w *effort) {
	defer w.cancel()
	w.unbegin()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), finishGrace)
	defer cancel()
	if _, err := r.inbox.putBack(ctx, 0, w.claim); err != nil {
		r.inbox.logError(ctx, "webhook workers could not give an event back", err)
	}
	r.settle(w.claim, Retrying)
}

// settle is called for each event that was taken. The claim of one that is done
// is in nobody's way, and ends with others; otherwise it has ended.
func (r *running) settle(c *claim, o Outcome) {
	if o == Done {
		r.mu.Lock()
		r.done = append(r.done, c.row)
		r.mu.Unlock()
	}
	r.open.Add(-1)
	signal(r.settled)
}

// takeDone returns the events that are done and still claimed.
func (r *running) takeDone() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.done
	r.done = nil
	return done
}

// endClaims leaves nothing behind. What it fails to end is in nobody's way, until
// Prune.
func (r *running) endClaims(ctx context.Context) {
	if done := r.takeDone(); len(done) > 0 {
		_, _ = r.inbox.pool.Exec(ctx, endClaims, done)
	}
}
