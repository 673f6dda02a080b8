package idem

import (
	"context"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Tracer makes spans of deliveries and attempts; package idemotel has one for
// OpenTelemetry. Its methods are called from many goroutines at once. If one panics,
// that is logged and has no other effect.
type Tracer interface {
	// Start is called once a delivery is verified and named, or refused, and when a
	// worker or Replay begins an attempt. The handler's context derives from the one
	// that it returns. end is called once, with what became of the delivery or the
	// attempt; the Outcome is "" if no attempt was made, because another worker or an
	// earlier event came first. A nil context stands for ctx, and a nil end for
	// nothing to call.
	Start(ctx context.Context, s Span) (traced context.Context, end func(Observation))

	// Carrier returns the trace of a delivery as a text, a traceparent for example.
	// ctx is what Start returned. An inbox stores it with the event, for the [Span]
	// of each attempt. "" stores nothing.
	Carrier(ctx context.Context) string
}

// Span is a delivery or an attempt that begins.
type Span struct {
	Stage Stage
	Event Event     // zero when a delivery was refused
	Label string    // see [Observation]
	Begun time.Time // of a delivery, when its first byte came: a little before Start

	// Carrier is that of the delivery that stored the event, in attempts at events
	// of an [Inbox]. That may be days ago: make it a link, not the parent.
	Carrier string
}

// span is a delivery or an attempt that has begun.
type span struct {
	receiving *Endpoint
	Span
	end func(Observation)
}

// startSpan begins a span. Its report must follow.
func (in *Endpoint) startSpan(ctx context.Context, stage Stage, e Event, carrier string, begun time.Time) (context.Context, *span) {
	s := &span{
		receiving: in,
		Span:      Span{Stage: stage, Event: e, Label: in.label(e), Begun: begun, Carrier: carrier},
		end:       func(Observation) {},
	}
	if in.Tracer == nil {
		return ctx, s
	}
	var traced context.Context
	var end func(Observation)
	if err := pgtx.Protect(func() error { traced, end = in.Tracer.Start(ctx, s.Span); return nil }); err != nil {
		in.logError(ctx, "webhook Tracer failed", e, err)
		return ctx, s
	}
	if traced == nil {
		traced = ctx
	}
	if end != nil {
		s.end = end
	}
	return traced, s
}

// Carrier returns the Tracer's Carrier, to store it with an event; "" without a Tracer.
func (in *Endpoint) Carrier(ctx context.Context, e Event) (text string) {
	if in.Tracer == nil {
		return ""
	}
	if err := pgtx.Protect(func() error { text = in.Tracer.Carrier(ctx); return nil }); err != nil {
		in.logError(ctx, "webhook Tracer failed", e, err)
	}
	if !nameable(text) {
		return ""
	}
	return text
}

// report tells the application what became of it. Without an outcome only the
// Tracer is told.
func (s *span) report(ctx context.Context, o Observation) {
	c := s.receiving
	o.Source, o.Stage, o.Label, o.Duration = c.source.Name(), s.Stage, s.Label, time.Since(s.Begun)
	c.countFailures(o)
	if o.Outcome != "" {
		c.observe(ctx, o)
	}
	if err := pgtx.Protect(func() error { s.end(o); return nil }); err != nil {
		c.logError(ctx, "webhook Tracer failed", o.Event, err)
	}
}
