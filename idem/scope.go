package idem

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5"
)

// scope is what a handler's context carries.
type scope struct {
	event Event

	mu    sync.Mutex
	queue *pgx.Batch              // for before the commit
	hooks []func(context.Context) // for after the commit
	owned bool                    // by a processor, which runs the hooks
	dry   bool                    // its transaction will be rolled back
}

type scopeKey struct{}

func withScope(ctx context.Context, e Event) (context.Context, *scope) {
	s := &scope{event: e, owned: true}
	return context.WithValue(ctx, scopeKey{}, s), s
}

// EventFrom returns the event that the handler with this context is working
// on: its Scope (which account), its ID and its Payload as received. ok is
// false outside of a handler.
func EventFrom(ctx context.Context) (e Event, ok bool) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		return Event{}, false
	}
	return s.event, true
}

// AfterCommit has f run once the handler's transaction is committed, before
// the provider is answered (if it is not yet), and never if it is rolled back:
// to wake a worker, to drop a cache entry. f gets the handler's context.
//
// It is a courtesy, not a promise: if the process dies between the commit and
// f, f does not run, and the event does not come again. What must happen
// belongs into a row of the transaction. If f panics, that is logged; the event
// is committed all the same.
//
// It panics where no [Processor] owns the transaction: outside of a handler,
// and under [Dispatch].
func AfterCommit(ctx context.Context, f func(ctx context.Context)) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok || !s.owned {
		panic("idem: AfterCommit needs the context of a handler that a Processor runs")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, f)
}

// hooked tells whether there are hooks to run.
func (s *scope) hooked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hooks) > 0
}

// runHooks waits for the hooks until Timeout: the event is committed, and no
// hook may cost it its answer.
func (p *Processor) runHooks(ctx context.Context, s *scope) {
	s.mu.Lock()
	hooks := s.hooks
	s.mu.Unlock()
	if len(hooks) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, f := range hooks {
			if err := protect(func() error { f(ctx); return nil }); err != nil {
				p.hookFailed(ctx, s.event, err)
			}
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		p.hookFailed(ctx, s.event, errors.New("it did not return in time"))
	}
}

func (p *Processor) hookFailed(ctx context.Context, e Event, err error) {
	if p.Logger == nil {
		return
	}
	p.Logger.LogAttrs(ctx, slog.LevelError, "webhook AfterCommit function failed",
		slog.String("source", e.Source), slog.String("scope", e.Scope), slog.String("id", e.ID),
		slog.String("type", e.Type), slog.String("error", err.Error()))
}
