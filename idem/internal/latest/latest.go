// Package latest reads a value in the background, for lookers that come more often than it should be read.
package latest

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Value holds the latest reading of a value. Set its exported fields before the first [Value.Refresh]. Several
// goroutines may use it at once.
type Value[T any] struct {
	Read  func(context.Context) (T, error) // a panic is an error
	Limit time.Duration                    // for a reading
	Fresh time.Duration                    // from the end of a reading until the next one may begin
	Pause int                              // the same, in times of what a reading took: the longer one counts

	// Go runs a function in the background. It reports false if nothing is to be read any more.
	Go func(func(context.Context)) bool

	mu      sync.Mutex
	last    Reading[T]
	stale   bool          // last is out of date
	reading chan struct{} // closed at the end of a reading; nil if there is none in progress
}

// Reading is a value, and the time of reading it; At is zero if nothing was read yet.
type Reading[T any] struct {
	Value T
	Err   error
	At    time.Time
	took  time.Duration
}

// Refresh begins a reading if one is due. After a reading that failed the pause is only as long as that reading
// took: a person may wait for the end of the outage.
func (v *Value[T]) Refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	pause := time.Duration(v.Pause) * v.last.took
	if v.last.Err != nil {
		pause = v.last.took
	}
	if v.reading != nil || !v.stale && time.Since(v.last.At) <= max(v.Fresh, pause) {
		return
	}
	done := make(chan struct{})
	if v.Go(func(ctx context.Context) { v.read(ctx, done) }) {
		v.reading, v.stale = done, false
	}
}

// Get waits for a reading in progress until ctx ends, and returns the last reading.
func (v *Value[T]) Get(ctx context.Context) Reading[T] {
	v.mu.Lock()
	reading := v.reading
	v.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// Forget makes the next Refresh read again.
func (v *Value[T]) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stale = true
}

func (v *Value[T]) read(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, v.Limit)
	defer cancel()
	var r Reading[T]
	start := time.Now()
	r.Value, r.Err = v.protected(ctx)
	r.At, r.took = time.Now(), time.Since(start)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.reading = r, nil
	close(done)
}

func (v *Value[T]) protected(ctx context.Context) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return v.Read(ctx)
}
