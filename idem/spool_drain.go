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
)

// lookAtSpoolEveryMinute has what an earlier process has left drained, and what
// another one leaves, until ctx ends.
func (i *Inbox) lookAtSpoolEveryMinute(ctx context.Context) {
	if i.Spool == nil {
		return
	}
	for ok := true; ok; ok = sleep(ctx, time.Minute) {
		i.Spool.look(i)
	}
}

// awaitSpool waits until the spool is empty, or could not be drained.
func (i *Inbox) awaitSpool(ctx context.Context) error {
	if i.Spool == nil {
		return nil
	}
	tried := i.Spool.gate.tries()
	i.Spool.look(i)
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

// start has the spool drained, if it is not empty and nobody drains it. Nobody has
// to remember that: what was acknowledged does not depend on a call of Run.
func (s *Spool) start() {
	if i := s.inbox.Load(); i != nil && s.gate.drain() {
		go (&drain{Spool: s, inbox: i, before: math.MaxInt, most: groupEvents}).run()
	}
}

// drain stores the events of a spool in Postgres until the spool is empty.
type drain struct {
	*Spool
	inbox *Inbox

	well    bool // the last pass stored all that it came to
	turning bool // deliveries wait now and then, until the spool is empty or a pass fails
	before  int  // events in the spool before the last pass
	failed  int  // passes in a row
	most    int  // events in a statement: fewer after a failure, which may be one of time
	files   int  // that were stored
	stored  int  // events that Postgres did not have
}

const (
	// drainFew is how many events are stored in a moment.
	drainFew = 1024
	// drainWait is how long deliveries may be kept waiting for that.
	drainWait = time.Second
)

func (d *drain) run() {
	ctx := context.Background()
	for !d.gate.open(d.dir.Empty) {
		// Deliveries wait when little is left, so that nothing is; and from when more
		// arrives than is drained. Then passes are short: each has them wait again.
		held, _ := d.dir.Held()
		d.turning = d.well && (d.turning || held <= drainFew || held >= d.before)
		if d.turning {
			d.gate.turn(drainWait)
		}
		d.before = held
		err := pgtx.Protect(func() error { return d.pass(ctx) }) // hooks of the pool are the application's
		if d.well = err == nil; d.well {
			d.failed, d.most = 0, groupEvents
			continue
		}
		if d.end(ctx, err) {
			return
		}
	}
	if d.files > 0 {
		d.inbox.logAttrs(ctx, slog.LevelInfo, "webhook spool is drained: events go to Postgres again", []slog.Attr{
			slog.String("source", d.inbox.source.Name()), slog.Int("events", d.stored),
		})
	}
}

// end is the end of a pass that has failed. It waits until the next one, unless
// there is to be none.
func (d *drain) end(ctx context.Context, err error) (over bool) {
	d.gate.endTurn(nil)
	d.gate.fail(err)
	if strings.Contains(err.Error(), closedPool) {
		d.gate.stopDraining()
		return true
	}
	d.most = max(1, d.most/4)
	if d.failed++; d.failed == 1 {
		d.inbox.logError(ctx, "webhook spool cannot be drained yet: it is tried every few seconds", Event{}, err)
	}
	wait := min(50*time.Millisecond<<min(d.failed, 6), 3*time.Second)
	sleep(ctx, wait/2+rand.N(wait/2))
	return false
}

// closedPool is what pgxpool says when the application has closed the pool: the
// program ends, and the next one drains. The error itself is that of another module.
const closedPool = "closed pool"
