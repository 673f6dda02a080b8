package spool

import (
	"context"
	"sync"
	"time"
)

// gate decides for each delivery whether it may go to Postgres or must go to the
// spool. The promise: an event that begins after another was acknowledged is
// not stored in Postgres before it.
//
// It is open while the spool is empty. The first event that Postgres does not take
// shuts it, and from then on all go to the spool. Only the drainer opens it again,
// once no file is left and no delivery is between beginPut and endPut: all that was
// acknowledged is in Postgres then. So that this moment comes although events keep
// arriving, the drainer pauses deliveries once there is little left, or while more
// arrives than it stores.
type gate struct {
	mu       sync.Mutex
	draining bool // there is a drainer, which will open the gate

	direct    context.Context    // of deliveries to Postgres; has ended while the gate is shut
	endDirect context.CancelFunc // shuts it
	paused    context.Context    // of a pause; has ended while there is none
	endPause  context.CancelFunc // has deliveries that wait in enter go on

	putting int           // deliveries on their way to the spool
	allPut  chan struct{} // closed while there are none

	lanes map[uint64]int // entities with events that went to the spool since the gate was open
	all   bool           // there are events of unknown entities in it

	tried chan struct{} // closed when a pass has failed, or the drainer has opened the gate
	err   error         // why the pass failed
}

func newGate() *gate {
	g := &gate{allPut: make(chan struct{}), lanes: make(map[uint64]int), tried: make(chan struct{})}
	g.direct, g.endDirect = context.WithCancel(context.Background())
	g.paused, g.endPause = context.WithCancel(context.Background())
	g.endPause()
	close(g.allPut)
	return g
}

// enter returns the context of a delivery to Postgres, or false if the event must go
// to the spool. While deliveries are paused it waits, once.
func (g *gate) enter(ctx context.Context) (direct context.Context, ok bool) {
	g.mu.Lock()
	paused := g.paused
	g.mu.Unlock()
	select {
	case <-paused.Done():
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.direct, !g.isShut()
}

// isShut reports whether the gate is shut. The caller holds the lock.
func (g *gate) isShut() bool { return g.direct.Err() != nil }

// shut shuts the gate. first reports whether it was open.
func (g *gate) shut() (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first = !g.isShut()
	g.endDirect()
	return first
}

// shutForUnknown shuts the gate because of files with events of unknown entities.
func (g *gate) shutForUnknown() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endDirect()
	g.all = true
}

// beginPut shuts the gate for an event that goes to the spool. behind reports whether
// earlier ones of its lane may be there. endPut must follow.
func (g *gate) beginPut(lane uint64) (behind bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endDirect()
	behind = g.all || g.lanes[lane] > 0
	g.lanes[lane]++
	if g.putting++; g.putting == 1 {
		g.allPut = make(chan struct{})
	}
	return behind
}

// endPut ends a put that beginPut began. kept is false only if the event is not in the spool,
// and will not be.
func (g *gate) endPut(lane uint64, kept bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !kept {
		if g.lanes[lane]--; g.lanes[lane] == 0 {
			delete(g.lanes, lane)
		}
	}
	if g.putting--; g.putting == 0 {
		close(g.allPut)
	}
}

// startDraining reports whether the caller must drain: the spool is not empty, and
// it is not being drained.
func (g *gate) startDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isShut() || g.draining {
		return false
	}
	g.draining = true
	return true
}

// stopDraining leaves the events in the spool to a later drainer.
func (g *gate) stopDraining() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = false
}

// pauseDeliveries has new deliveries wait in enter until fail or open, and not longer
// than limit. It waits for those that are on their way to the spool, as long.
func (g *gate) pauseDeliveries(limit time.Duration) {
	g.mu.Lock()
	if g.paused.Err() != nil {
		g.paused, g.endPause = context.WithTimeout(context.Background(), limit)
	}
	allPut := g.allPut
	g.mu.Unlock()
	select {
	case <-allPut:
	case <-time.After(limit):
	}
}

// open opens the gate if the spool is empty, and nothing is on its way there. Then the
// drainer has ended.
func (g *gate) open(empty func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.putting > 0 || !empty() {
		return false
	}
	g.direct, g.endDirect = context.WithCancel(context.Background())
	g.draining, g.all = false, false
	g.lanes = make(map[uint64]int) // a cleared map keeps its size
	g.endTryLocked(nil)
	return true
}

// fail notes why a pass failed. Deliveries that wait go to the spool.
func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endTryLocked(err)
}

// endTryLocked ends a pass for the callers that wait for it, or for its pause.
func (g *gate) endTryLocked(err error) {
	g.endPause()
	g.err = err
	close(g.tried)
	g.tried = make(chan struct{})
}

// nextTry returns a channel that is closed once the next pass has failed, or the gate is open.
func (g *gate) nextTry() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tried
}

// state reports whether events go to the spool, and why the last pass failed.
func (g *gate) state() (shut bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isShut(), g.err
}
