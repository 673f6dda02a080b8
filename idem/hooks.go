package idem

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

type hooksKey struct{}

type hooks struct {
	mu    sync.Mutex
	funcs []func(context.Context)
}

func withHooks(ctx context.Context) (context.Context, *hooks) {
	h := &hooks{}
	return context.WithValue(ctx, hooksKey{}, h), h
}

// AfterCommit has f run once the handler's transaction is committed, before
// the provider is answered, and never if it is rolled back: to wake a worker,
// to drop a cache entry. The context is the handler's own.
//
// It is a courtesy, not a promise: if the process dies between the commit and
// f, f does not run, and the event does not come again. What must happen
// belongs into a row of the transaction. A panic of f is logged; the event is
// committed all the same.
//
// It panics outside of a handler, whose transaction it could not know.
func AfterCommit(ctx context.Context, f func(ctx context.Context)) {
	h, ok := ctx.Value(hooksKey{}).(*hooks)
	if !ok {
		panic("idem: AfterCommit needs the context of a handler that a Processor runs")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.funcs = append(h.funcs, f)
}

// runHooks waits for the hooks until Timeout: the event is committed, and no
// hook may cost it its answer.
func (p *Processor) runHooks(ctx context.Context, e Event, h *hooks) {
	h.mu.Lock()
	funcs := h.funcs
	h.mu.Unlock()
	if len(funcs) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, f := range funcs {
			p.runHook(ctx, e, f)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		p.hookFailed(ctx, e, errors.New("an AfterCommit function did not return in time"))
	}
}

func (p *Processor) runHook(ctx context.Context, e Event, f func(context.Context)) {
	err := protect(func() error { f(ctx); return nil })
	if err != nil {
		p.hookFailed(ctx, e, err)
	}
}

func (p *Processor) hookFailed(ctx context.Context, e Event, err error) {
	p.Logger.LogAttrs(ctx, slog.LevelError, "webhook hook failed after commit",
		slog.String("source", e.Source), slog.String("scope", e.Scope), slog.String("id", e.ID),
		slog.String("type", e.Type), slog.String("error", err.Error()))
}
