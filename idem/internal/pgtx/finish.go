package pgtx

import (
	"context"
	"errors"
	"time"
)

// grace is the time that a handler has to return once its context has ended.
const grace = 500 * time.Millisecond

// finishing is the time that COMMIT, ROLLBACK and the records after them may
// take, all together, when the time of the attempt is over.
const finishing = time.Second

// Finish returns a context for work that must be finished although ctx is over, or
// nearly. However many steps that takes, they share one end, grace and finishing
// after the deadline of ctx.
func Finish(ctx context.Context) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled), end.IsZero(): // before its time: the workers are being stopped
		end = time.Now()
	case time.Until(end) > finishing:
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(grace+finishing))
}
