package idem

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paghooks/paghooks/idem/internal/spool"
)

// sink is where the events of a spool go. Its methods do not panic.
type sink interface {
	// decode returns the event of a record. After an error it is never to be stored,
	// and is only good for log.
	decode(record []byte) (spooled, error)

	// insert stores events in one statement, all or none, and returns what became of
	// each.
	insert(ctx context.Context, events []spooled) ([]inserted, error)

	// meaning says what an error of insert means.
	meaning(err error) meaning

	// log logs a line, with the name of e and with err unless they are nil.
	log(ctx context.Context, level slog.Level, message string, e spooled, err error, attrs ...slog.Attr)
}

// spooled is an event of a spool.
type spooled interface {
	Lane() string // of the events that are stored in order
}

// inserted is what became of an event that was to be stored.
type inserted struct {
	isNew bool
	err   error // it is stored later
}

// meaning is what an error of a sink means.
type meaning int

const (
	isUnclear     meaning = iota
	isClosed              // nothing is stored any more, in this process
	isUnavailable         // nothing is stored now
	isHeld                // one of the events cannot be stored now
	isRefused             // one of the events is never to be stored
)

// drainer stores the events of a spool in Postgres, in passes, until the spool is empty.
type drainer struct {
	dir  *spool.Dir
	gate *gate
	sink sink

	lastOK     bool // there was a pass, and the last one did not fail
	pausing    bool // deliveries are paused for each pass, until the spool is empty or a pass fails
	heldBefore int  // events in the spool before the last pass
	failed     int  // passes in a row
	maxEvents  int  // in a statement: fewer after one that got no answer, it may take too long
	files      int  // that were stored
	stored     int  // events that Postgres did not have
}

const (
	// fewEvents is how many are stored in a moment.
	fewEvents = 1024
	// maxPause is how long deliveries may be kept waiting for that.
	maxPause = time.Second
)

func newDrainer(dir *spool.Dir, gate *gate, to sink) *drainer {
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
		err := d.runPass(ctx)
		if d.lastOK = err == nil; d.lastOK {
			d.failed, d.maxEvents = 0, groupEvents
			continue
		}
		if !d.tryAgain(ctx, err) {
			return
		}
	}
	if d.files > 0 {
		d.sink.log(ctx, slog.LevelInfo, "webhook spool is drained: events go to Postgres again", nil, nil, slog.Int("events", d.stored))
	}
}

// tryAgain waits for the next pass after one that failed. It reports false if there is
// to be none.
func (d *drainer) tryAgain(ctx context.Context, err error) bool {
	d.gate.fail(err)
	switch d.sink.meaning(err) {
	case isClosed:
		d.gate.stopDraining()
		return false
	case isUnavailable:
		d.maxEvents = max(1, d.maxEvents/4)
	}
	if d.failed++; d.failed == 1 {
		d.sink.log(ctx, slog.LevelError, "webhook spool cannot be drained yet: it is tried every few seconds", nil, err)
	}
	wait := min(50*time.Millisecond<<min(d.failed, 6), 3*time.Second)
	return sleep(ctx, wait/2+rand.N(wait/2))
}
