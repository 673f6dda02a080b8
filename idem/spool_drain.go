package idem

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

// scanSpoolEveryMinute has the spool drained of what other processes leave there, the
// first time at once, until ctx ends.
func (i *Inbox) scanSpoolEveryMinute(ctx context.Context) {
	if i.Spool == nil {
		return
	}
	for ok := true; ok; ok = sleep(ctx, time.Minute) {
		i.Spool.scan(i)
		if err := i.Spool.dir.Faults().Write; err != nil {
			i.logError(ctx, "webhook spool cannot keep events: see that its directory can be written to, and that there is room", Event{}, err)
		}
	}
}

// awaitSpool waits until the spool is empty, or could not be drained.
func (i *Inbox) awaitSpool(ctx context.Context) error {
	if i.Spool == nil {
		return nil
	}
	tried := i.Spool.gate.nextTry()
	i.Spool.scan(i)
	if shut, _ := i.Spool.gate.state(); !shut {
		return nil
	}
	select {
	case <-tried:
	case <-ctx.Done():
		return ctx.Err()
	}
	if shut, err := i.Spool.gate.state(); shut {
		return fmt.Errorf("idem: draining the spool: %w", err)
	}
	return nil
}

// ensureDraining has the spool drained, if it is not empty and nobody drains it. What
// was acknowledged does not depend on a call of Run.
func (s *Spool) ensureDraining() {
	if i := s.inbox.Load(); i != nil && s.gate.startDraining() {
		d := &drainer{dir: s.dir, gate: s.gate, inbox: i, heldBefore: math.MaxInt, maxEvents: groupEvents}
		go d.run()
	}
}

// drainer stores the events of a spool in Postgres, in passes, until the spool is empty.
type drainer struct {
	dir   *spool.Dir
	gate  *gate
	inbox *Inbox

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
		err := pgtx.Protect(func() error { return d.runPass(ctx) }) // hooks of the pool are the application's
		if d.lastOK = err == nil; d.lastOK {
			d.failed, d.maxEvents = 0, groupEvents
			continue
		}
		if !d.tryAgain(ctx, err) {
			return
		}
	}
	if d.files > 0 {
		d.inbox.logAttrs(ctx, slog.LevelInfo, "webhook spool is drained: events go to Postgres again", []slog.Attr{
			slog.String("source", d.inbox.source.Name()), slog.Int("events", d.stored),
		})
	}
}

// tryAgain waits for the next pass after one that failed. It reports false if there is
// to be none.
func (d *drainer) tryAgain(ctx context.Context, err error) bool {
	d.gate.fail(err)
	if strings.Contains(err.Error(), closedPool) {
		d.gate.stopDraining()
		return false
	}
	if pgtx.Unavailable(err) {
		d.maxEvents = max(1, d.maxEvents/4)
	}
	if d.failed++; d.failed == 1 {
		d.inbox.logError(ctx, "webhook spool cannot be drained yet: it is tried every few seconds", Event{}, err)
	}
	wait := min(50*time.Millisecond<<min(d.failed, 6), 3*time.Second)
	return sleep(ctx, wait/2+rand.N(wait/2))
}

// closedPool is what pgxpool says when the application has closed the pool: the
// program ends, and the next one drains. The error itself is that of another module.
const closedPool = "closed pool"
