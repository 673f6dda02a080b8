package idemkafka

import (
	"context"
	"errors"
	"sync"
	"time"
)

// turn holds the turn: of the handlers, of which many run at the same time, or that of
// a rebalance, which runs alone.
type turn struct {
	mu     sync.RWMutex    // the handlers read
	ctx    context.Context // of the handlers since the last rebalance
	cancel context.CancelCauseFunc
}

func newTurn() *turn {
	t := &turn{}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t
}

var errGivenUp = errors.New("the handler has taken so long that the group could not rebalance: raise kgo.RebalanceTimeout")

// handle calls f between rebalances.
func (t *turn) handle(ctx context.Context, f func(context.Context) error) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(errGivenUp) })()
	err := f(ctx)
	if err != nil && t.ctx.Err() != nil {
		err = errors.Join(err, errGivenUp)
	}
	return err
}

// pause waits until no handler runs, and cancels those that run after limit. No other
// is called until resume is called. If ctx ends before, it returns false.
func (t *turn) pause(ctx context.Context, limit time.Duration) (resume func(), paused bool) {
	cancel := t.cancel
	late := time.AfterFunc(limit, func() { cancel(errGivenUp) })
	defer late.Stop()
	locked, resumed := make(chan struct{}), make(chan struct{})
	go func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		cancel(nil)
		t.ctx, t.cancel = context.WithCancelCause(context.Background())
		close(locked)
		<-resumed
	}()
	select {
	case <-locked:
		return func() { close(resumed) }, true
	case <-ctx.Done():
		return func() { close(resumed) }, false
	}
}
