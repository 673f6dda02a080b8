package count

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Deliveries counts, by their reasons, the genuine deliveries in a row that have failed.
type Deliveries struct {
	failed  atomic.Bool // there are some
	mu      sync.Mutex
	reasons map[string]int // a source has a few
	n       int
	hint    string // of the last one that has a hint
}

// Failed notes that a delivery has failed, for a reason in one word. hint, which may be "", says more, and what to do.
func (d *Deliveries) Failed(reason, hint string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reasons == nil {
		d.reasons = make(map[string]int)
	}
	d.failed.Store(true)
	d.n++
	d.reasons[reason]++
	d.hint = cmp.Or(hint, d.hint)
}

// Done notes that a delivery was acknowledged.
func (d *Deliveries) Done() {
	if !d.failed.Load() { // of nearly every one, and so concurrent ones do not wait for each other
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed.Store(false)
	d.reasons, d.n, d.hint = nil, 0, ""
}

// InARow returns the number of deliveries that have failed since the last one that was acknowledged, the reasons with
// their numbers, "body_too_large 5, not_stored 1", and the last hint.
func (d *Deliveries) InARow() (n int, reasons, hint string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(d.reasons)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, d.reasons[reason]))
	}
	return d.n, strings.Join(parts, ", "), d.hint
}
