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

// tally counts what became of deliveries, as [idem.Receiving.Observe] tells.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) observe(_ context.Context, o idem.Observation) {
	became := string(o.Outcome)
	if refusal, ok := errors.AsType[*idem.Refusal](o.Err); ok {
		became += " (" + string(refusal.Reason) + ")"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	t.counts[became]++
}

// take returns what was counted since it was last called.
func (t *tally) take() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.counts = nil }()
	return t.counts
}

// summary is "200 done", or "10 x 200: 1 done, 9 duplicate".
func summary(statuses []int, became map[string]int) string {
	if len(statuses) == 1 && len(became) == 1 {
		for b := range became {
			return fmt.Sprint(statuses[0], " ", b)
		}
	}
	answers := make(map[string]int)
	for _, status := range statuses {
		answers[fmt.Sprint("x ", status)]++
	}
	return counted(answers) + ": " + counted(became)
}

// counted lists how often there was what, the rarest first.
func counted(counts map[string]int) string {
	parts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	for i, what := range parts {
		parts[i] = fmt.Sprint(counts[what], " ", what)
	}
	return strings.Join(parts, ", ")
}
