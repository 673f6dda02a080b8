package handling

import (
	"context"
	"errors"
	"sync"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Hooks are the functions to call after a commit. The zero value is ready.
type Hooks struct {
	mu sync.Mutex
	fs []func()
}

// Add adds a function.
func (h *Hooks) Add(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fs = append(h.fs, f)
}

// All returns the functions that were added.
func (h *Hooks) All() []func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fs
}

// Run calls the hooks, and waits for them until ctx ends: the event is committed,
// and no hook may cost it its answer. It calls failed with each failure.
func (h *Hooks) Run(ctx context.Context, failed func(error)) {
	fs := h.All()
	if len(fs) == 0 {
		return
	}
	done := pgtx.Start(func() error {
		for _, f := range fs {
			if err := pgtx.Protect(func() error { f(); return nil }); err != nil {
				failed(err)
			}
		}
		return nil
	})
	select {
	case <-done:
	case <-ctx.Done():
		failed(errors.New("it did not return in time"))
	}
}
