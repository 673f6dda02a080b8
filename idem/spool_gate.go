package idem

import (
	"context"
	"sync"
	"time"
)

// gate decides for each delivery whether it may go to Postgres or must go to the
// spool. What is promised: an event that begins after another was acknowledged is
// not stored in Postgres before it.
//
// It is open while the spool is empty. The first event that Postgres does not take
// shuts it, and from then on all go to the spool. Only the drain opens it again,
// while it holds the lock that deliveries begin and end with, once no delivery is
// between the two and no file is left: all that was acknowledged is in Postgres
// then. So that this moment comes although events keep arriving, the drain has
// them wait for it once there is little left.
type gate struct {
	mu       sync.Mutex
	shut     bool
	draining bool               // a goroutine drains, and will open the gate
	direct   context.Context    // of deliveries to Postgres; ends when the gate is shut
	leave    context.CancelFunc // ends it
	putting  int                // deliveries on their way to the spool
	none     chan struct{}      // closed when they have arrived; nil if nobody waits
	turning  chan struct{}      // closed when deliveries need not wait any longer; nil if they need not

	lanes map[uint64]int // entities whose events went to the spool since the gate was open
	all   bool           // there are events of unknown entities in it

	tried chan struct{} // closed when a drain has failed, or has opened the gate
	err   error         // why it has failed
}

func newGate() *gate {
	g := &gate{lanes: make(map[uint64]int), tried: make(chan struct{})}
	g.direct, g.leave = context.WithCancel(context.Background())
	return g
}

// enter returns the context of a delivery to Postgres, or false if the event must go
// to the spool. If that is about to change it waits for it, once.
func (g *gate) enter(ctx context.Context) (direct context.Context, ok bool) {
	g.mu.Lock()
	if g.shut && g.turning != nil {
		turning := g.turning
		g.mu.Unlock()
		select {
		case <-turning:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	return g.direct, !g.shut
}

// begin shuts the gate for an event that goes to the spool. held tells whether
// earlier ones of its lane may be there; first, whether the gate was open.
func (g *gate) begin(lane uint64) (held, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first = !g.shut
	g.shutLocked()
	held = g.all || g.lanes[lane] > 0
	g.lanes[lane]++
	g.putting++
	return held, first
}

// end is the end of begin: the event is in the spool, or may be, or is not.
func (g *gate) end(lane uint64, landed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !landed {
		if g.lanes[lane]--; g.lanes[lane] == 0 {
			delete(g.lanes, lane)
		}
	}
	if g.putting--; g.putting == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// hold shuts the gate because of a file whose delivery need not be waiting for it.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shutLocked()
}

// holdAll shuts the gate because of files with events of unknown entities.
func (g *gate) holdAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shutLocked()
	g.all = true
}

func (g *gate) shutLocked() {
	g.shut = true
	g.leave()
}

// drain reports whether the caller is to drain: somebody must, and nobody does.
func (g *gate) drain() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	ok := g.shut && !g.draining
	g.draining = g.draining || ok
	return ok
}

// stopDraining leaves what there is to a later drain.
func (g *gate) stopDraining() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = false
}

// turn has deliveries that begin wait until endTurn or open, and not longer than
// most. It waits for those that are on their way to the spool, as long, and reports
// whether they have arrived.
func (g *gate) turn(most time.Duration) bool {
	g.mu.Lock()
	if g.turning == nil {
		turning := make(chan struct{})
		g.turning = turning
		time.AfterFunc(most, func() { g.endTurn(turning) })
	}
	if g.putting == 0 {
		g.mu.Unlock()
		return true
	}
	none := make(chan struct{})
	g.none = none
	g.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-none:
		return true
	case <-timer.C:
		return false
	}
}

// endTurn has deliveries go to the spool again. A nil turning is the present one.
func (g *gate) endTurn(turning chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turning != nil && (turning == nil || turning == g.turning) {
		close(g.turning)
		g.turning = nil
	}
}

// open opens the gate if the spool is empty, and nothing is on its way there. It ends
// the drain.
func (g *gate) open(empty func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.putting > 0 || !empty() {
		return false
	}
	g.shut, g.draining, g.all = false, false, false
	g.lanes = make(map[uint64]int) // a cleared map keeps its size
	g.triedLocked(nil)
	g.direct, g.leave = context.WithCancel(context.Background())
	if g.turning != nil {
		close(g.turning)
		g.turning = nil
	}
	return true
}

// fail notes why a drain could not go on.
func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.triedLocked(err)
}

func (g *gate) triedLocked(err error) {
	g.err = err
	close(g.tried)
	g.tried = make(chan struct{})
}

// tries returns what is closed after the next try to drain.
func (g *gate) tries() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tried
}

// state tells whether events go to the spool, and why the last drain has failed.
func (g *gate) state() (shut bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut, g.err
}
