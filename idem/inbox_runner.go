package idem

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/paghooks/paghooks/idem/internal/claims"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// errStopped is the cause with which handlers are canceled when their workers are stopped.
var errStopped = errors.New("the workers were stopped: the next ones go on with it")

// runner is one call of Run or Drain.
type runner struct {
	inbox    *Inbox
	attempts context.Context         // of the handlers
	cancel   context.CancelCauseFunc // ends them
	free     chan struct{}           // has an element for each worker that is free
	workers  sync.WaitGroup
	timedOut atomic.Int64 // handlers that did not return when they were stopped
	position claims.Position

	postponed atomic.Bool // since drain looked last, an event became due a moment later
	searchAll atomic.Bool // the next search is to begin at the start: a claim has ended without a word

	alive     context.Context // as long as anything is claimed
	stopSigns context.CancelFunc
	signing   sync.WaitGroup // the senders of signs of life
	channel   string         // that is listened to; "" for none
	signs     *claims.Signs
	begun     bool

	mu      sync.Mutex
	running map[string]bool // the row keys of claimed events
}

func (i *Inbox) newRunner(ctx context.Context) *runner {
	r := &runner{inbox: i, free: make(chan struct{}, i.Workers), signs: claims.NewSigns(i.source.Name()), running: make(map[string]bool)}
	r.alive, r.stopSigns = context.WithCancel(context.WithoutCancel(ctx))
	r.attempts, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for range i.Workers {
		r.free <- struct{}{}
	}
	return r
}

// addRunning notes that an event is claimed, and is being processed.
func (r *runner) addRunning(c store.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[c.RowKey()] = true
}

// removeRunning notes that it is not being processed any more. If its claim could not be ended, the
// next search finds it.
func (r *runner) removeRunning(c store.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, c.RowKey())
}

// runningKeys returns the row keys of the events that are being processed.
func (r *runner) runningKeys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.AppendSeq(make([]string, 0, len(r.running)), maps.Keys(r.running))
}
