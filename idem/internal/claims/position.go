package claims

import (
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
