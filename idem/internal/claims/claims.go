// Package claims has the parts of claiming events that need no SQL: the position from which a search
// goes on, the signs of life of those that claim, and the attempt that runs alone.
package claims

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Position is the place at which claims go on, so that they need not pass each time the rows that are
// done and not yet vacuumed: an old snapshot, of a backup say, keeps millions of
// such entries in the index.
type Position struct {
	last     time.Time // when the last event that was seen was due
	searched time.Time // when a search began at the start
}

const (
	// positionLag is the time before the position at which searches begin: events become
	// visible, by a commit, a little later than they are due.
	positionLag = 300 * time.Millisecond
	// searchAllEvery is the interval at which one begins at the start. It finds events that were committed
	// later than that.
	searchAllEvery = 5 * time.Second
)

// After returns the time from which the next search looks for events that are due; zero for all.
func (p *Position) After() time.Time {
	if now := time.Now(); now.Sub(p.searched) >= searchAllEvery {
		p.searched, p.last = now, time.Time{}
	}
	if p.last.IsZero() {
		return time.Time{}
	}
	return p.last.Add(-positionLag)
}

// Seen notes the result of a search.
func (p *Position) Seen(found store.Claims) {
	if found.Last.After(p.last) {
		p.last = found.Last
	}
}

const (
	// SignEvery is the interval at which a runner gives a sign of life.
	SignEvery = 2 * time.Second
	// DeadAfter is the time without a sign after which another runner is dead. The one that sees that
	// first deletes its row, and others see one sign later that it is gone: 12 seconds in all.
	DeadAfter = 8 * time.Second
)

// Signs are a runner's own sign of life, and those that it has seen of the others.
//
// Whether another one is alive is judged by this process's clock, from when it was seen to
// give a sign. So nothing dies when the database's clock is changed, or when Postgres could
// not be reached, by any of them. Only one that is met for the first time is judged by the
// database's clock.
type Signs struct {
	Own     store.Worker
	started time.Time
	others  map[int64]seen
}

// seen is the last sign of another runner.
type seen struct {
	at   time.Time // by the database's clock
	here time.Time // when that was, by this one's
}

// NewSigns returns those of a new runner for the events of a source.
func NewSigns(source string) *Signs {
	host, _ := os.Hostname() // for people
	return &Signs{
		Own:     store.Worker{ID: rand.Int64(), Source: source, Host: host, PID: os.Getpid()},
		started: time.Now(), others: make(map[int64]seen),
	}
}

// Running returns the time since the runner began.
func (s *Signs) Running(now time.Time) time.Duration { return now.Sub(s.started) }

// Look notes the signs of all others, and returns those that are dead. gone
// reports whether any that was there is not there any more.
func (s *Signs) Look(now time.Time, others []store.Worker) (dead []store.Worker, gone bool) {
	before := s.others
	s.others = make(map[int64]seen, len(others))
	for _, w := range others {
		last, met := before[w.ID]
		delete(before, w.ID)
		switch {
		case !met:
			last = seen{w.SeenAt, now.Add(-max(w.Silent, 0))}
		case !last.at.Equal(w.SeenAt):
			last = seen{w.SeenAt, now.Add(-min(max(w.Silent, 0), SignEvery))}
		}
		s.others[w.ID] = last
		if now.Sub(last.here) >= DeadAfter {
			dead = append(dead, w)
		}
	}
	return dead, len(before) > 0
}

// Lost is for when Postgres could not be reached: the others may not have reached it either.
func (s *Signs) Lost(now time.Time) {
	for id, last := range s.others {
		last.here = now
		s.others[id] = last
	}
}

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
