package idem

import (
	"context"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

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

// report reports its outcome to the application. Without an outcome it calls
// only the Tracer.
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
