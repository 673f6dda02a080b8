package idem

import (
	"context"
	"sync"
	"time"
)

// solo counts the attempts of workers, and lets one of them run alone.
//
// An event that killed its process twice is tried alone, so that none that is
// processed beside it is blamed. Others wait for that: hence it is bounded. A process dies as
// a whole: hence all inboxes of a process share one solo.
type solo struct {
	mu       sync.Mutex
	running  int
	reserved bool          // somebody may run alone, or does
	alone    bool          // no other attempt begins
	missed   int           // tries to run alone that came to nothing, since one did not
	turn     int           // counts the rights to run alone that have ended
	late     *time.Timer   // ends alone
	changed  chan struct{} // closed and replaced when running or alone change; nil if there is no waiter
}

const (
	// aloneWait is the time for which others do not begin, at the first try to run alone: they wait.
	// After each try that came to nothing it is twice as long the next time, and that is put
	// off aloneShare times as long.
	aloneWait  = 500 * time.Millisecond
	aloneShare = 10
	// aloneMost is after how long others begin again beside one that runs alone.
	aloneMost = 5 * time.Second
)

// processSolo is that of this process.
var processSolo solo

// enter counts n attempts that are about to begin, and waits while one runs
// alone. It reports whether they may begin: ctx has not ended.
func (i *solo) enter(ctx context.Context, n int) bool {
	return i.wait(ctx, func() bool {
		if i.alone {
			return false
		}
		i.running += n
		return true
	})
}

// leave is for n attempts that have ended, or did not begin.
func (i *solo) leave(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running -= n
	i.wake()
}

// reserve reserves the right to run alone, which only one has at a time.
func (i *solo) reserve() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	free := !i.reserved
	i.reserved = true
	return free
}

// unreserve ends reserve, and its effect.
func (i *solo) unreserve() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reserved, i.alone = false, false
	i.turn++
	if i.late != nil {
		i.late.Stop()
	}
	i.wake()
}

// runAlone keeps others from beginning, and waits until one attempt is left:
// the caller's, which holds the right to that, and runs alone for aloneMost then. It waits
// for most at most; if that is not enough, it returns after how long to try again.
func (i *solo) runAlone(ctx context.Context, most time.Duration) (alone bool, again time.Duration) {
	i.mu.Lock()
	i.alone = true
	most = min(most, aloneWait<<min(i.missed, 10))
	i.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	alone = i.wait(ctx, func() bool {
		if i.running > 1 {
			return false
		}
		i.missed = 0
		i.late = time.AfterFunc(aloneMost, i.admit(i.turn))
		return true
	})
	if alone {
		return true, 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.missed++
	return false, aloneShare * most
}

// admit returns a function that lets others begin again, as long as that turn to run alone lasts.
func (i *solo) admit(turn int) func() {
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.turn == turn {
			i.alone = false
			i.wake()
		}
	}
}

// wait waits until try, which is called with the lock, succeeds.
func (i *solo) wait(ctx context.Context, try func() bool) bool {
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
func (i *solo) wake() {
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}
