// Package claims has the parts of claiming events that need no SQL: the position from which a search goes on,
// the signs of life of runners, and the attempt that runs alone.
package claims

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// MaxCrashes is the number of processes in a row that die while they process an event, or are cut off from
// Postgres, after which the event is parked without another attempt. It is a variable for tests that kill one
// process after the other.
var MaxCrashes = 3

// Lived is the time after which a process claims events that were being processed when two processes died. It is a
// variable for tests that kill one process after the other.
var Lived = 3 * time.Second

// Position is the time of the last event that a search has seen: the next search begins there, and need not
// pass the index entries of done events that are not vacuumed yet. An old snapshot, of a backup say, keeps
// millions of them.
type Position struct {
	last     time.Time // when the last seen event was due
	searched time.Time // when a search last began at the start
}

const (
	// positionLag is the time before the position at which searches begin: events become
	// visible, by a commit, a little later than they are due.
	positionLag = 300 * time.Millisecond
	// searchAllEvery is the interval at which a search begins at the start, to find events that were
	// committed later than positionLag allows for.
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
	// DeadAfter is the time without a sign after which another runner is dead. The first runner to notice
	// deletes the row of the dead one, and the others see within another SignEvery that the row is gone: 12
	// seconds in all.
	DeadAfter = 8 * time.Second
)

// Signs holds a runner's own sign of life, and the signs that it has seen of other runners.
//
// Another runner's age is measured by this process's clock, from the moment at which its last sign was seen.
// So no runner is taken for dead because the database's clock was changed, or because none of them could
// reach Postgres. Only a runner that is seen for the first time is judged by the database's clock.
type Signs struct {
	Own     store.Worker
	started time.Time
	others  map[int64]seen
}

// seen is the last sign of another runner.
type seen struct {
	at   time.Time // by the database's clock
	here time.Time // the same moment by this process's clock
}

// NewSigns returns the Signs of a new runner for the events of a source.
func NewSigns(source string) *Signs {
	host, _ := os.Hostname() // for people
	return &Signs{
		Own:     store.Worker{ID: rand.Int64(), Source: source, Host: host, PID: os.Getpid()},
		started: time.Now(), others: make(map[int64]seen),
	}
}

// Running returns the time since the runner began.
func (s *Signs) Running(now time.Time) time.Duration { return now.Sub(s.started) }

// Look notes the signs of all other runners, and returns the dead ones. gone reports whether the row of a
// runner has disappeared since the last Look.
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

// Lost notes that Postgres could not be reached: the other runners may not have reached it either.
func (s *Signs) Lost(now time.Time) {
	for id, last := range s.others {
		last.here = now
		s.others[id] = last
	}
}

// Solo counts the attempts of workers and first tries, and lets one of them run alone.
//
// An event that killed its process twice is tried alone, so that no event beside it is blamed. Other events
// wait meanwhile, and so the time alone is bounded. A process dies as a whole, and so all inboxes of a
// process share one Solo.
type Solo struct {
	mu       sync.Mutex
	running  int
	reserved bool          // one attempt holds the right to run alone
	alone    bool          // new attempts wait
	missed   int           // failed tries to run alone since the last success
	turn     int           // counts the rights to run alone that have ended
	changed  chan struct{} // closed and replaced when running or alone change; nil if there is no waiter
}

const (
	// soloWait is the time for which new attempts wait at the first try to run alone. After each failed try
	// the time doubles, and the next try comes soloShare times as long after it.
	soloWait  = 500 * time.Millisecond
	soloShare = 10
	// soloMost is the longest time for which an attempt runs alone.
	soloMost = 5 * time.Second
)

// Enter waits while an attempt runs alone, and counts n attempts that begin. It reports false if ctx has
// ended first.
func (s *Solo) Enter(ctx context.Context, n int) bool {
	return s.wait(ctx, func() bool {
		if s.alone {
			return false
		}
		s.running += n
		return true
	})
}

// TryEnter counts an attempt that begins, and reports true, unless an attempt runs alone.
func (s *Solo) TryEnter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alone {
		return false
	}
	s.running++
	return true
}

// Leave notes that n counted attempts have ended, or did not begin.
func (s *Solo) Leave(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running -= n
	s.wake()
}

// Reserve reserves the right to run alone, which one attempt holds at a time. It reports whether the right
// was free.
func (s *Solo) Reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := !s.reserved
	s.reserved = true
	return idle
}

// Unreserve gives the right up, and lets new attempts begin.
func (s *Solo) Unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved, s.alone = false, false
	s.turn++
	s.wake()
}

// RunAlone has new attempts wait, and waits until the caller's attempt, which holds the right, is the only
// one left; it then runs alone for soloMost. RunAlone waits for most at most; if other attempts are left
// then, again is the time after which to try again.
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

// admit returns a function that lets new attempts begin, unless that turn to run alone has ended.
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

// wait calls try, with the lock held, until it succeeds or ctx ends.
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

// wake wakes all waiters.
func (s *Solo) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
