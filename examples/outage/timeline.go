package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// timeline prints the events. Payments and deliveries are many: those that lie
// between two lines that matter are summed up in one.
type timeline struct {
	out     io.Writer
	between stretch
	waiting int // events in the queue
}

// stretch is payments and deliveries that are not printed yet.
type stretch struct {
	from, to time.Time
	payments int
	answers  map[string]int
}

// observe is told of all that happens in the queue, see
// [asaastest.Fake.Observe].
func (t *timeline) observe(e asaastest.Entry) {
	switch e.Kind {
	case asaastest.Queued:
		t.waiting++
		t.between.add(e.At).payments++
	case asaastest.Delivered:
		t.waiting--
		t.between.add(e.At).answers[answer(e)]++
	case asaastest.Failed, asaastest.Copied:
		t.between.add(e.At).answers[answer(e)]++
	case asaastest.Emailed:
		t.say(e.At, "Asaas writes an e-mail: %d attempts failed", e.Attempt)
	case asaastest.Paused:
		t.say(e.At, "Asaas stops the queue")
	case asaastest.Resumed:
		t.say(e.At, "Asaas starts the queue, %d events wait in it", t.waiting)
	case asaastest.BackoffRemoved:
		t.say(e.At, "Asaas removes the penalty, %d events wait in the queue", t.waiting)
	case asaastest.Deleted:
		t.waiting--
		t.say(e.At, "Asaas deletes %s for good", e.EventID)
	}
}

func (s *stretch) add(at time.Time) *stretch {
	if s.from.IsZero() {
		s.from, s.answers = at, make(map[string]int)
	}
	s.to = at
	return s
}

// answer is "200", or "200 (duplicate)".
func answer(e asaastest.Entry) string {
	var notes []string
	if strings.Contains(e.Answer, `"duplicate":true`) {
		notes = append(notes, "duplicate")
	}
	if e.Error != "" {
		notes = append(notes, e.Error)
	}
	if len(notes) == 0 {
		return strconv.Itoa(e.Status)
	}
	return fmt.Sprintf("%d (%s)", e.Status, strings.Join(notes, ", "))
}

// String is "3 payments; deliveries answered 3 x 200, 2 x 503".
func (s *stretch) String() string {
	var parts []string
	switch {
	case s.payments == 1:
		parts = append(parts, "1 payment")
	case s.payments > 1:
		parts = append(parts, fmt.Sprintf("%d payments", s.payments))
	}
	if len(s.answers) > 0 {
		parts = append(parts, "deliveries answered "+counted(s.answers))
	}
	return strings.Join(parts, "; ")
}

// counted lists each name with its count, the most frequent first.
func counted(counts map[string]int) string {
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, what := range list {
		list[i] = fmt.Sprintf("%d x %s", counts[what], what)
	}
	return strings.Join(list, ", ")
}

// say prints a line that matters, after the sum of the lines before it.
func (t *timeline) say(at time.Time, format string, args ...any) {
	if s := t.between; !s.from.IsZero() {
		t.between = stretch{}
		t.row(s.from, s.to, s.String())
	}
	t.row(at, at, fmt.Sprintf(format, args...))
}

// row prints a line, and goes on below where it is too long.
func (t *timeline) row(from, to time.Time, what string) {
	first, last := clock(from), clock(to)
	if first == last {
		last = ""
	}
	for _, line := range wrapped(what, 96) {
		fmt.Fprintf(t.out, "%-9s  %-9s  %s\n", first, last, line)
		first, last = "", ""
	}
}

func clock(at time.Time) string { return at.In(asaas.Brasilia()).Format("Mon 15:04") }

// wrapped cuts text between words, into lines of so many bytes where words allow.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
