package idemcmd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error {
	return terminal.PrintJSON(p.Stdout, value)
}

// table is one to which row adds. A column of times has the zone in its head.
func (p *program) table(heads ...string) *terminal.Table {
	zone := p.now().In(p.zone).Format("MST")
	for n := range heads {
		heads[n] = strings.Replace(heads[n], "@", zone, 1)
	}
	return &terminal.Table{Heads: heads}
}

// row prints a value as a line of JSON, or adds the cells to the table.
func (p *program) row(t *terminal.Table, value any, cells ...string) error {
	if p.json {
		return p.printLine(value)
	}
	for n := range cells {
		cells[n] = terminal.Clean(cells[n])
	}
	t.Add(cells...)
	return nil
}

// printTable prints a table that has rows.
func (p *program) printTable(t *terminal.Table) error {
	if p.json {
		return nil
	}
	return t.Print(p.Stdout, longest)
}

// longest is the longest text of a column that leaves room for others.
const longest = 60

// short returns a text for a column that is not the last.
func short(text string) string { return terminal.Cut(terminal.Clean(text), longest) }

// quote makes an id fit for a shell and a terminal: Asaas's have an & in them. One that would be
// taken for a flag is the value of one. The shell gets the id as it is: another one may be that of another event.
func quote(id string) string {
	quoted := id
	switch {
	case strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }):
		var octal strings.Builder
		visible := strings.TrimRight(id, "\n")
		for _, b := range []byte(visible) {
			fmt.Fprintf(&octal, `\%03o`, b)
		}
		quoted = `"$(printf '` + octal.String() + `')` + id[len(visible):] + `"` // $() takes newlines at the end away
	case strings.ContainsFunc(id, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}):
		quoted = "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	}
	if strings.HasPrefix(id, "-") {
		return "-id " + quoted
	}
	return quoted
}

// at is a time for people.
func (p *program) at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.zone).Format(time.DateTime)
}

// moment is a time in a sentence, with its zone.
func (p *program) moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.zone).Format(time.DateTime + " MST")
}

// tell prints a text as a line of stderr.
func (p *program) tell(t string, args ...any) { p.say("idem: %s\n", command.Text(t, args...)) }

// events is a number of events.
func (p *program) events(n int64) string {
	if n == 1 {
		return "1 event"
	}
	return command.Text("%s events", n)
}

// sourceOf is the source's name where there are several.
func (p *program) sourceOf(o *operator.Operator) string {
	if len(p.operators) < 2 {
		return ""
	}
	return o.SourceName()
}

// isNoTable returns true for the error of Postgres that a table is missing.
func isNoTable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "42P01"
}

// positive is a number unless that is 0.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

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
		line += fmt.Sprintf(", %.0f/s", rate) + command.Text(", %s left", left)
	}
	if sum.Failed > 0 {
		line += command.Text(", %s failed", sum.Failed)
	}
	b.say("\r%s%s", line, strings.Repeat(" ", max(0, b.width-utf8.RuneCountInString(line))))
	b.width = utf8.RuneCountInString(line)
}

// firstFew is the number of failures that are shown.
const firstFew = 5

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
