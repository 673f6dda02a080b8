// Package handling holds the state of one run of a handler, which its context carries:
// the event, and the work that the handler declares for the commit and for after it.
package handling

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Handling is one run of a handler.
type Handling struct {
	Event store.Event
	Dry   bool   // its transaction will be rolled back
	After *Hooks // nil where nothing runs them

	mu       sync.Mutex
	declared pgx.Batch // the handler's statements for before the commit
	messages pgx.Batch // and this module's, behind them
	returned bool      // the handler has: a declaration now comes too late
}

type key struct{}

// With returns a context that carries h.
func With(ctx context.Context, h *Handling) context.Context { return context.WithValue(ctx, key{}, h) }

// From returns the Handling that a handler's context carries. ok is false outside of a handler.
func From(ctx context.Context) (h *Handling, ok bool) {
	h, ok = ctx.Value(key{}).(*Handling)
	return h, ok
}

// Declare queues a statement of the handler's own for before the commit. It reports
// false, and queues nothing, once the handler has returned.
func (h *Handling) Declare(queue func(*pgx.Batch)) (inTime bool) { return h.add(&h.declared, queue) }

// DeclareMessage queues a statement that inserts a message, behind those of [Handling.Declare].
func (h *Handling) DeclareMessage(queue func(*pgx.Batch)) (inTime bool) {
	return h.add(&h.messages, queue)
}

func (h *Handling) add(to *pgx.Batch, queue func(*pgx.Batch)) (inTime bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.returned {
		return false
	}
	queue(to)
	return true
}

// Statements returns the statements that the handler declared until now, when it has returned:
// statements of its own, and messages.
func (h *Handling) Statements() (declared, messages *pgx.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.returned = true
	return &h.declared, &h.messages
}
