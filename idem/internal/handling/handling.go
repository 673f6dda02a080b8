// Package handling holds the state of one run of a handler, which its context carries:
// the event, and the work that the handler declares for the commit and for after it.
package handling

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Handling is one run of a handler.
type Handling struct {
	Event  store.Event
	Failed time.Time // when a worker's attempt before this one failed, by this process's clock; zero if none has
	Dry    bool      // its transaction will be rolled back
	After  *Hooks    // nil under Dispatch, where nothing runs hooks

	mu       sync.Mutex
	declared pgx.Batch // the handler's statements, executed before the commit
	messages pgx.Batch // this module's statements, executed after them
	returned bool      // the handler has returned: a declaration comes too late
}

type key struct{}

// With returns a context that carries h.
func With(ctx context.Context, h *Handling) context.Context { return context.WithValue(ctx, key{}, h) }

// From returns the Handling that a handler's context carries. ok is false outside of a handler.
func From(ctx context.Context) (h *Handling, ok bool) {
	h, ok = ctx.Value(key{}).(*Handling)
	return h, ok
}

// Declare queues a statement of the handler, to be executed before the commit. It reports false, and queues
// nothing, once the handler has returned.
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

// Statements returns the statements that the handler has declared, and the ones of its messages. It is called
// when the handler has returned.
func (h *Handling) Statements() (declared, messages *pgx.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.returned = true
	return &h.declared, &h.messages
}

// Final is the error of a handler whose event must not be tried again.
type Final struct{ Err error }

func (f *Final) Error() string { return f.Err.Error() }

func (f *Final) Unwrap() error { return f.Err }

// Later is the error of a handler whose event must not be tried again before At.
type Later struct {
	Err  error
	At   time.Time
	Away bool // see [IsAway]
}

func (l *Later) Error() string { return l.Err.Error() }

func (l *Later) Unwrap() error { return l.Err }

// IsFinal reports whether a [Final] is in err.
func IsFinal(err error) bool {
	_, final := errors.AsType[*Final](err)
	return final
}

// RetryAt returns the time of the [Later] in err, or the zero time.
func RetryAt(err error) time.Time {
	if later, ok := errors.AsType[*Later](err); ok {
		return later.At
	}
	return time.Time{}
}

// IsAway reports whether the broker of an outbox is to blame for err, most likely, and not the message.
func IsAway(err error) bool {
	later, ok := errors.AsType[*Later](err)
	return ok && later.Away
}

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

// Run calls the hooks, and waits for them until ctx ends: the event is committed, and a hook must not prevent
// the answer. Run calls failed with each failure.
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

type rememberedKey struct{}

// WithRemembered returns the context of a delivery to a receiver that recognizes another delivery of an event
// for the time d.
func WithRemembered(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, rememberedKey{}, d)
}

// Remembered returns the time of [WithRemembered]; 0 without one.
func Remembered(ctx context.Context) time.Duration {
	d, _ := ctx.Value(rememberedKey{}).(time.Duration)
	return d
}
