package spool

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"
)

// drainer stores the events of a spool in Postgres, in passes, until the spool is empty.
type drainer struct {
	dir  *Dir
	gate *gate
	sink Sink

	lastOK     bool // there was a pass, and the last one did not fail
	pausing    bool // deliveries are paused for each pass, until the spool is empty or a pass fails
	heldBefore int  // events in the spool before the last pass
	failed     int  // passes in a row
	maxEvents  int  // in a statement: fewer after one that got no answer, it may take too long
	files      int  // that were stored
	stored     int  // events that Postgres did not have
}

const (
	// fewEvents is a number of events that are stored in a moment.
	fewEvents = 1024
	// maxPause is the longest time that deliveries are kept waiting for that.
	maxPause = time.Second
)

func newDrainer(dir *Dir, gate *gate, to Sink) *drainer {
	return &drainer{dir: dir, gate: gate, sink: to, heldBefore: math.MaxInt, maxEvents: groupEvents}
}

func (d *drainer) run() {
	ctx := context.Background()
	for !d.gate.open(d.dir.Empty) {
		// Deliveries are paused so that the spool becomes empty: when little is left, and
		// from when more arrives than is drained. Passes are short then, with a pause each.
		held, _ := d.dir.Held()
		d.pausing = d.lastOK && (d.pausing || held <= fewEvents || held >= d.heldBefore)
		if d.pausing {
			d.gate.pauseDeliveries(maxPause)
		}
		d.heldBefore = held
		err := d.pass(ctx)
		if d.lastOK = err == nil; d.lastOK {
			d.failed, d.maxEvents = 0, groupEvents
			continue
		}
		if !d.tryAgain(ctx, err) {
			return
		}
	}
	if d.files > 0 {
		d.sink.Log(ctx, slog.LevelInfo, "webhook spool is drained: events go to Postgres again", nil, nil, slog.Int("events", d.stored))
	}
}

// pass makes a pass, a short one where deliveries wait for its end.
func (d *drainer) pass(ctx context.Context) error {
	p := &pass{dir: d.dir, sink: d.sink, enough: passSize, maxEvents: d.maxEvents, behind: make(map[string]bool)}
	if d.pausing {
		p.enough = 1
	}
	err := p.run(ctx)
	d.files += p.files
	d.stored += p.stored
	return err
}

// tryAgain waits for the next pass after one that failed. It reports false if there is
// to be none.
func (d *drainer) tryAgain(ctx context.Context, err error) bool {
	d.gate.fail(err)
	switch d.sink.Meaning(err) {
	case Closed:
		d.gate.stopDraining()
		return false
	case Unavailable:
		d.maxEvents = max(1, d.maxEvents/4)
	}
	if d.failed++; d.failed == 1 {
		d.sink.Log(ctx, slog.LevelError, "webhook spool cannot be drained yet: it is tried every few seconds", nil, err)
	}
	wait := min(50*time.Millisecond<<min(d.failed, 6), 3*time.Second)
	return sleep(ctx, wait/2+rand.N(wait/2))
}

// sleep waits for d. It reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
