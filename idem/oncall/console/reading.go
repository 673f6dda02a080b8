package console

import (
	"context"
	"sync"
	"time"
)

// latest holds the last reading of a value that may take a while to read.
type latest[T any] struct {
	mu      sync.Mutex
	now     reading[T]
	before  reading[T]    // an earlier one, of a minute ago at most if there was one
	stale   bool          // now is out of date
	reading chan struct{} // closed at the end of a reading; nil if there is none in progress
}

// reading is a value, and the time of reading it; At is zero if nothing was read yet.
type reading[T any] struct {
	Value T
	Err   error
	At    time.Time
	took  time.Duration
}

// readTime is the time that a reading may take, in the background.
const readTime = time.Minute

// refresh starts a reading in the background if the last one is older than fresh and older than ten times the
// time that it took: the page takes a tenth of the database's time at most. After a reading that failed the
// pause is only as long as that reading took, since a person waits for the end of the outage.
func (l *latest[T]) refresh(running *running, fresh time.Duration, read func(context.Context) (T, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause := 10 * l.now.took
	if l.now.Err != nil {
		pause = l.now.took
	}
	if l.reading != nil || !l.stale && time.Since(l.now.At) <= max(fresh, pause) {
		return
	}
	done := make(chan struct{})
	if running.look(func(ctx context.Context) { l.read(ctx, read, done) }) {
		l.reading, l.stale = done, false
	}
}

// get waits for a reading in progress until ctx ends. It returns the last reading, and an earlier one to
// compare it with.
func (l *latest[T]) get(ctx context.Context) (now, before reading[T]) {
	l.mu.Lock()
	wait := l.reading
	l.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.before
}

// forget makes the next refresh read again.
func (l *latest[T]) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

func (l *latest[T]) read(ctx context.Context, read func(context.Context) (T, error), done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var r reading[T]
	start := time.Now()
	r.Err = protect(ctx, func(ctx context.Context) (err error) {
		r.Value, err = read(ctx)
		return err
	})
	r.At, r.took = time.Now(), time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now.Err == nil && !l.now.At.IsZero() && r.At.Sub(l.before.At) > time.Minute {
		l.before = l.now
	}
	l.now, l.reading = r, nil
	close(done)
}
