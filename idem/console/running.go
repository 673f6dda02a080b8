package console

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// running holds the actions in the background.
type running struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	now    int
	closed bool
	all    sync.WaitGroup
}

// maxRunning is the number of actions that may go on at once: each holds a connection.
const maxRunning = 4

// inTime is the time that an action may take until the page answers without its result.
const inTime = 2 * time.Second

func newRunning() *running {
	ctx, cancel := context.WithCancel(context.Background())
	return &running{ctx: ctx, cancel: cancel}
}

// start runs do until it ends or the page is closed, and returns a channel that gets its
// error.
func (r *running) start(do func(context.Context) error) (<-chan error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, refuse(http.StatusServiceUnavailable, "The application is shutting down: nothing was begun. Try it again in a minute.")
	case r.now == maxRunning:
		return nil, refuse(http.StatusServiceUnavailable, "%s actions are running, and no more may run at the same time: nothing was begun. Try it again when one has ended.", maxRunning)
	}
	r.now++
	ended := make(chan error, 1)
	r.all.Go(func() {
		err := protect(r.ctx, do)
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
		ended <- err
	})
	return ended, nil
}

// look reads something in the background, unless the page is closed.
func (r *running) look(read func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.all.Go(func() { read(r.ctx) })
	}
	return !r.closed
}

// protect makes an error of a panic, of an application's Queues for example.
func protect(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("console: panic: %v", p)
		}
	}()
	return do(ctx)
}

func (r *running) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.all.Wait()
}
