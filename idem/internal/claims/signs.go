package claims

import (
	"math/rand/v2"
	"os"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

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
