package idemkafka

import (
	"context"
	"errors"
	"sync"
	"time"
)

// turn is the handlers' turn, or a rebalance's.
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

// take waits until no handler runs, and cancels those that run after limit. No other
// is called until give is called. It waits no longer if ctx ends.
func (t *turn) take(ctx context.Context, limit time.Duration) (give func(), taken bool) {
	cancel := t.cancel
	late := time.AfterFunc(limit, func() { cancel(errGivenUp) })
	defer late.Stop()
	locked, given := make(chan struct{}), make(chan struct{})
	go func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		cancel(nil)
		t.ctx, t.cancel = context.WithCancelCause(context.Background())
		close(locked)
		<-given
	}()
	select {
	case <-locked:
		return func() { close(given) }, true
	case <-ctx.Done():
		return func() { close(given) }, false
	}
}
