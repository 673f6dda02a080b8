package idem

import "context"

type eventKey struct{}

// withEvent lets a handler ask with [EventFrom] what it is handling.
func withEvent(ctx context.Context, e Event) context.Context {
	return context.WithValue(ctx, eventKey{}, e)
}

// EventFrom returns the event that the handler with this context is working
// on: its Scope (which account), its ID and its Payload as received. ok is
// false outside of a handler.
func EventFrom(ctx context.Context) (e Event, ok bool) {
	e, ok = ctx.Value(eventKey{}).(Event)
	return e, ok
}
