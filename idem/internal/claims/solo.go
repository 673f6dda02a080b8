package claims

import (
	"context"
	"sync"
	"time"
)

// Solo counts the attempts of workers, and lets one of them run alone.
//
// An event that killed its process twice is tried alone, so that none that is
// processed beside it is blamed. Others wait for that: hence it is bounded. A process dies as
// a whole: hence all inboxes of a process share one Solo.
type Solo struct {
	mu       sync.Mutex
	running  int
	reserved bool          // one attempt has the right to run alone
	alone    bool          // no other attempt begins
	missed   int           // tries to run alone that came to nothing, since one did not
	turn     int           // counts the rights to run alone that have ended
	changed  chan struct{} // closed and replaced when running or alone change; nil if there is no waiter
}

const (
	// soloWait is the time for which others do not begin, at the first try to run alone: they wait.
	// After each try that came to nothing it is twice as long the next time, and that is put
	// off soloShare times as long.
	soloWait  = 500 * time.Millisecond
	soloShare = 10
	// soloMost is after how long others begin again beside one that runs alone.
	soloMost = 5 * time.Second
)

// Enter counts n attempts that are about to begin, and waits while one runs
// alone. It reports whether they may begin: ctx has not ended.
func (s *Solo) Enter(ctx context.Context, n int) bool {
	return s.wait(ctx, func() bool {
		if s.alone {
			return false
		}
		s.running += n
		return true
	})
}

// Leave is for n attempts that have ended, or did not begin.
func (s *Solo) Leave(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running -= n
	s.wake()
}

// Reserve reserves the right to run alone, which only one has at a time.
func (s *Solo) Reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := !s.reserved
	s.reserved = true
	return free
}

// Unreserve ends Reserve, and its effect.
func (s *Solo) Unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved, s.alone = false, false
	s.turn++
	s.wake()
}

// RunAlone keeps others from beginning, and waits until one attempt is left:
// the caller's, which holds the right to that, and runs alone for soloMost then. It waits
// for most at most; if that is not enough, it returns after how long to try again.
func (s *Solo) RunAlone(ctx context.Context, most time.Duration) (alone bool, again time.Duration) {
	s.mu.Lock()
	s.alone = true
	most = min(most, soloWait<<min(s.missed, 10))
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	alone = s.wait(ctx, func() bool {
		if s.running > 1 {
			return false
		}
		s.missed = 0
		time.AfterFunc(soloMost, s.admit(s.turn))
		return true
	})
	if alone {
		return true, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed++
	return false, soloShare * most
}

// admit returns a function that lets others begin again, as long as that turn to run alone lasts.
func (s *Solo) admit(turn int) func() {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.turn == turn {
			s.alone = false
			s.wake()
		}
	}
}

// wait waits until try, which is called with the lock, succeeds.
func (s *Solo) wait(ctx context.Context, try func() bool) bool {
	for {
		s.mu.Lock()
		if try() {
			s.mu.Unlock()
			return true
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// wake wakes those that wait.
func (s *Solo) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
