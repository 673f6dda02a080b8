package idem

import (
	"context"

	"github.com/paghooks/paghooks/idem/internal/handling"
)

// AfterCommit registers f to be called once the handler's transaction is
// committed, before the provider is answered (if it is not yet), and never if it
// is rolled back: to wake a worker, to drop a cache entry. f gets the handler's
// context.
//
// If the process dies between the commit and f, or the answer to COMMIT is lost, f
// does not run, and the event does not come again. Let a row of the transaction ask
// for what must happen. If f panics, that is logged; the event is committed all the same.
//
// It panics outside of a handler, and under [Dispatch] unless its context is
// one of [CollectAfterCommit].
func AfterCommit(ctx context.Context, f func(ctx context.Context)) {
	h, ok := handling.From(ctx)
	if !ok || h.After == nil {
		panic("idem: AfterCommit needs the context of a handler and, under Dispatch, one of CollectAfterCommit")
	}
	h.After.Add(func() { f(ctx) })
}

// CollectAfterCommit returns a context for [Dispatch] in which [AfterCommit]
// works, and the function that runs what was registered: call it once the
// transaction is committed.
//
//	ctx, committed := idem.CollectAfterCommit(ctx)
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return events.Dispatch(ctx, tx, e) })
//	if err == nil {
//		committed()
//	}
func CollectAfterCommit(ctx context.Context) (collecting context.Context, committed func()) {
	h := &handling.Hooks{}
	return context.WithValue(ctx, hooksKey{}, h), func() {
		for _, f := range h.All() {
			f()
		}
	}
}

type hooksKey struct{}
