package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/paghooks/paghooks/idem"
)

// tally counts the outcomes of deliveries and of the work on them, as
// [idem.Endpoint.Observe] tells.
type tally struct {
	mu      sync.Mutex
	counts  counts
	waiting int           // stored events with a first attempt that has not ended
	changed chan struct{} // closed when something is counted
}

type counts struct{ answered, worked map[string]int }

func (t *tally) observe(_ context.Context, o idem.Observation) {
	became := string(o.Outcome)
	if refusal, ok := errors.AsType[*idem.Refusal](o.Err); ok {
		became += " (" + string(refusal.Reason) + ")"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts.answered == nil {
		t.counts = counts{make(map[string]int), make(map[string]int)}
	}
	switch {
	case o.Stage == idem.StageAttempt:
		t.counts.worked[became]++
		t.waiting--
	default:
		t.counts.answered[became]++
		if o.Outcome == idem.Pending {
			t.waiting++
		}
	}
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// take waits until all deliveries are worked on, and returns the outcomes that were
// counted since it was last called.
func (t *tally) take(ctx context.Context) (counts, error) {
	return t.takeWhen(ctx, func() bool { return t.waiting <= 0 })
}

// takeDone waits until an event is done.
func (t *tally) takeDone(ctx context.Context) (counts, error) {
	return t.takeWhen(ctx, func() bool { return t.counts.worked[string(idem.Done)] > 0 })
}

func (t *tally) takeWhen(ctx context.Context, enough func() bool) (counts, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !enough() {
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if ctx.Err() != nil {
			return counts{}, ctx.Err()
		}
	}
	taken := t.counts
	t.counts, t.waiting = counts{}, 0
	return taken, nil
}

// summary is "200 ignored", "200 pending, then done", or "10 x 200: 1 pending,
// 9 duplicate, then done".
func summary(statuses []int, became counts) string {
	answers := make(map[string]int)
	for _, status := range statuses {
		answers[fmt.Sprint("x ", status)]++
	}
	said := counted(answers) + ": " + counted(became.answered)
	if len(statuses) == 1 {
		said = fmt.Sprint(statuses[0], " ", only(became.answered))
	}
	if len(became.worked) > 0 {
		said += ", then " + only(became.worked)
	}
	return said
}

// only is counted without the number of a single one.
func only(counts map[string]int) string {
	if len(counts) == 1 {
		for what, n := range counts {
			if n == 1 {
				return what
			}
		}
	}
	return counted(counts)
}

// counted lists each name with its count, the rarest first.
func counted(counts map[string]int) string {
	parts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	for i, what := range parts {
		parts[i] = fmt.Sprint(counts[what], " ", what)
	}
	return strings.Join(parts, ", ")
}
