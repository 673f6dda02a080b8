package idemcmd

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// progress prints a replay: the first failures as they come and, on a terminal, a line that is
// drawn again and again.
type progress struct {
	*program
	what   string
	begun  time.Time
	drawn  time.Time
	width  int // of the line that is there
	failed int // failures to be shown
}

// redrawTime is the shortest time between two lines.
const redrawTime = 100 * time.Millisecond

func (p *program) newProgress(what string) *progress {
	return &progress{program: p, what: what, begun: p.now()}
}

// show is for operator.Operator.Progress.
func (b *progress) show(sum idem.Replayed, of int) {
	if !b.progresses {
		return
	}
	now, handled := b.now(), sum.Done+sum.Failed+sum.Unhandled
	if now.Sub(b.drawn) < redrawTime && handled < of {
		return
	}
	b.drawn = now
	line := command.Text("%s: %s of %s", b.what, handled, of) + fmt.Sprintf(" (%d %%)", handled*100/max(of, 1))
	if took := now.Sub(b.begun); took > 0 && handled > 0 {
		rate := float64(handled) / took.Seconds()
		left := time.Duration(float64(of-handled) / rate * float64(time.Second))
		line += fmt.Sprintf(", %.0f/s", rate) + command.Text(", %s left", age(left))
	}
	if sum.Failed > 0 {
		line += command.Text(", %s failed", sum.Failed)
	}
	b.say("\r%s%s", line, strings.Repeat(" ", max(0, b.width-utf8.RuneCountInString(line))))
	b.width = utf8.RuneCountInString(line)
}

// failure is for operator.Operator.Failed: it says why an event failed, of the first
// few.
func (b *progress) failure(e idem.Event, err error) {
	if b.failed++; b.failed > firstFew {
		return
	}
	if b.width > 0 {
		b.say("\r%s\r", strings.Repeat(" ", b.width))
		b.width = 0
	}
	b.say("  %s %s: %s\n", terminal.Clean(e.Type), terminal.Clean(e.ID), terminal.Clean(err.Error()))
}

// end leaves the last line, and goes to the next.
func (b *progress) end() {
	if b.width > 0 {
		b.say("\n")
	}
	if more := b.failed - firstFew; more > 0 {
		b.say("  %s\n", command.Text("and %s more", b.events(int64(more))))
	}
}
