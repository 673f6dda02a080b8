package health

import (
	"errors"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// lastLook is the result of the last look at the stored events.
type lastLook[T any] struct {
	mu    sync.Mutex // held while somebody looks
	found T
	err   error
	next  time.Time // when to look again
}

// lookShare is the pause until the next look, in times of the last one.
const lookShare = 20

// errNotLooked is the result while Postgres takes too long for another look.
var errNotLooked = errors.New("not looked at yet, because Postgres took too long for another check")

// get calls find, unless that was done lately, or another look of this round took too long:
// one that waits for a lock costs each round its time once. late is set if this one did.
func (l *lastLook[T]) get(late *bool, find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch start := time.Now(); {
	case start.Before(l.next):
	case !*late:
		l.found, l.err = find()
		l.next = time.Now().Add(lookShare * time.Since(start))
		*late = l.err != nil && pgtx.TookTooLong(l.err)
	case l.next.IsZero():
		return l.found, errNotLooked
	}
	return l.found, l.err
}
