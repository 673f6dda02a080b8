package wire

import (
	"context"
	"time"
)

// relayedKey is the context's key of the time at which a relay published a message.
type relayedKey struct{}

// WithRelayed returns a context that says when a relay published the event that is
// accepted with it.
func WithRelayed(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, relayedKey{}, at)
}

// SinceRelayed returns how long an event was with a broker by now; 0 if no relay
// published it, and more than 0 if one did, also where the clocks of the two hosts
// say otherwise.
func SinceRelayed(ctx context.Context, now time.Time) time.Duration {
	if at, ok := ctx.Value(relayedKey{}).(time.Time); ok {
		return max(now.Sub(at), 1)
	}
	return 0
}
