package count

import "sync"

// Share counts how many of the latest trials were slow.
type Share struct {
	mu        sync.Mutex
	all, slow int
}

// latest is the number of trials after which all counts are halved.
const latest = 1000

// Add counts a trial.
func (s *Share) Add(slow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == latest {
		s.all, s.slow = s.all/2, s.slow/2
	}
	s.all++
	if slow {
		s.slow++
	}
}

// Of returns the numbers of all trials and of the slow ones.
func (s *Share) Of() (all, slow int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, s.slow
}
