package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// tally counts the outcomes of events, as [idem.Endpoint.Observe] reports them. An
// application has metrics here.
type tally struct {
	events                         int64
	acknowledged, duplicates, done atomic.Int64
	finished                       chan struct{} // closed when all events are done
}

func newTally(events int) *tally { return &tally{events: int64(events), finished: make(chan struct{})} }

func (t *tally) observe(_ context.Context, o idem.Observation) {
	switch o.Outcome {
	case idem.Pending:
		t.acknowledged.Add(1)
	case idem.Duplicate:
		t.duplicates.Add(1)
	case idem.Done:
		if t.done.Add(1) == t.events {
			close(t.finished)
		}
	}
}

func (t *tally) String() string {
	done := t.done.Load() // before the number that it is subtracted from, so that no count is negative
	acknowledged := t.acknowledged.Load()
	return fmt.Sprintf("acknowledged %5d   duplicates %5d   done %5d   pending %5d",
		acknowledged, t.duplicates.Load(), done, max(0, acknowledged-done))
}

// progress shows a tally: in one line that is drawn again and again, or where
// that cannot be done in a line for each quarter of the work.
type progress struct {
	out    io.Writer
	redraw bool
}

// show shows the tally until stop is closed.
func (p progress) show(t *tally, stop <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for quarter := int64(1); ; {
		select {
		case <-stop:
			p.draw(t)
			if p.redraw {
				fmt.Fprintln(p.out)
			}
			return
		case <-tick.C:
		}
		switch reached := 4 * t.done.Load() / t.events; {
		case p.redraw:
			p.draw(t)
		case reached >= quarter && reached < 4:
			quarter = reached + 1
			p.draw(t)
		}
	}
}

func (p progress) draw(t *tally) {
	if p.redraw {
		fmt.Fprintf(p.out, "\r%s", t)
		return
	}
	fmt.Fprintln(p.out, t)
}
