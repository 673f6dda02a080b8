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
// for work that must happen. If f panics, that is logged; the event is committed all the same.
//
// It panics outside of a handler, and under [Dispatch]. The caller of Dispatch commits, and does
// the work that follows the commit.
func AfterCommit(ctx context.Context, f func(ctx context.Context)) {
	h, ok := handling.From(ctx)
	if !ok || h.After == nil {
		panic("idem: AfterCommit needs the context of a handler; under Dispatch its caller commits, and does what follows")
	}
	h.After.Add(func() { f(ctx) })
}
