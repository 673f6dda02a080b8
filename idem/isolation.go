package idem

import (
	"context"
	"sync"
)

// isolation counts the attempts of workers, and lets one of them run alone.
//
// An event that killed its process twice is tried alone, so that none that is
// processed beside it is blamed. A process dies as a whole: hence all inboxes of
// a process share one isolation.
type isolation struct {
	mu       sync.Mutex
	running  int
	reserved bool          // somebody may run alone, or does
	alone    bool          // nobody else begins
	changed  chan struct{} // closed and replaced when running or alone change; nil if nobody waits
}

// processIsolation is the isolation of this process.
var processIsolation isolation

// enter counts n attempts that are about to begin, and waits while one runs
// alone. It reports whether they may begin: ctx has not ended.
func (i *isolation) enter(ctx context.Context, n int) bool {
	return i.wait(ctx, func() bool {
		if i.alone {
			return false
		}
		i.running += n
		return true
	})
}

// leave is for n attempts that have ended, or did not begin.
func (i *isolation) leave(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running -= n
	i.wake()
}

// reserve reserves the right to run alone, which only one has at a time.
func (i *isolation) reserve() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	free := !i.reserved
	i.reserved = true
	return free
}

// unreserve ends reserve, and what came of it.
func (i *isolation) unreserve() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reserved, i.alone = false, false
	i.wake()
}

// runAlone keeps others from beginning, and waits until one attempt is left:
// the caller's, who holds the right to that. ctx must end.
func (i *isolation) runAlone(ctx context.Context) bool {
	i.mu.Lock()
	i.alone = true
	i.mu.Unlock()
	return i.wait(ctx, func() bool { return i.running <= 1 })
}

// wait waits until try, which is called with the lock, succeeds.
func (i *isolation) wait(ctx context.Context, try func() bool) bool {
	for {
		i.mu.Lock()
		if try() {
			i.mu.Unlock()
			return true
		}
		if i.changed == nil {
			i.changed = make(chan struct{})
		}
		changed := i.changed
		i.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// wake wakes those that wait.
func (i *isolation) wake() {
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}
