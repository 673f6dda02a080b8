package idem

import (
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// looks are the last looks at the stored events of a source. Each reads all that is not
// done.
type looks struct {
	retrying, due, ahead lastLook[time.Duration] // how old the oldest is
	standing             lastLook[store.Standing]
}

// lastLook is the result of the last look at the stored events.
type lastLook[T any] struct {
	mu    sync.Mutex // held while somebody looks
	found T
	err   error
	next  time.Time // when to look again
}

// lookShare is how much longer than a look took it is until the next one.
const lookShare = 20

// get calls find, unless that was done lately.
func (l *lastLook[T]) get(find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if start := time.Now(); !start.Before(l.next) {
		l.found, l.err = find()
		l.next = time.Now().Add(lookShare * time.Since(start))
	}
	return l.found, l.err
}
