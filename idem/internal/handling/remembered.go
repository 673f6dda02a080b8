package handling

import (
	"context"
	"time"
)

type rememberedKey struct{}

// WithRemembered returns the context of a delivery to a receiver that tells a second delivery of an event
// from the first for that time.
func WithRemembered(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, rememberedKey{}, d)
}

// Remembered returns the time of [WithRemembered]; 0 without one.
func Remembered(ctx context.Context) time.Duration {
	d, _ := ctx.Value(rememberedKey{}).(time.Duration)
	return d
}
