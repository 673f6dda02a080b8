package idem

import (
	"context"
	"log/slog"
	"time"
)

// Outcome says what became of one delivery.
type Outcome string

const (
	Done      Outcome = "done"      // the work is committed
	Pending   Outcome = "pending"   // stored by an inbox; its workers are next
	Duplicate Outcome = "duplicate" // the event was stored before; nothing ran
	Unhandled Outcome = "unhandled" // no handler: kept with its payload for Replay
	Ignored   Outcome = "ignored"   // the application ignores this type; nothing is stored
	Parked    Outcome = "parked"    // does not decode, or failed too often: kept as failed, with its payload, for Replay
	Retrying  Outcome = "retrying"  // the attempt failed and was rolled back; the event will be tried again
	Unknown   Outcome = "unknown"   // the answer to COMMIT was lost; the next delivery will find out
	Refused   Outcome = "refused"   // not genuine; nothing is stored
	Rejected  Outcome = "rejected"  // not a delivery at all: wrong method, too large, cut off
)

// Acknowledged tells whether the provider may forget the event: it is committed, or
// the application does not want it.
func (o Outcome) Acknowledged() bool {
	switch o {
	case Done, Pending, Duplicate, Unhandled, Ignored, Parked:
		return true
	}
	return false
}

// Observation is what [Processor.Observe] is told about each delivery and, by an
// [Inbox], about each attempt of its workers, too.
type Observation struct {
	Event    Event // zero before the delivery is verified and named
	Outcome  Outcome
	Err      error // why it failed, was parked or was refused; a *[Refusal] when refused
	Duration time.Duration
}

func (p *Processor) report(ctx context.Context, o Observation) {
	if p.Observe != nil {
		p.Observe(ctx, o)
	}
	level := logLevel(o)
	if p.Logger == nil || !p.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("outcome", string(o.Outcome)),
		slog.String("source", p.source.Name()),
		slog.Duration("duration", o.Duration),
	}
	if o.Event.ID != "" {
		attrs = append(attrs, slog.String("scope", o.Event.Scope), slog.String("id", o.Event.ID), slog.String("type", o.Event.Type))
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("error", o.Err.Error()))
	}
	p.Logger.LogAttrs(ctx, level, "webhook "+string(o.Outcome), attrs...)
}

func logLevel(o Observation) slog.Level {
	switch {
	case o.Outcome == Refused || o.Outcome == Rejected:
		return slog.LevelWarn
	case o.Err != nil:
		return slog.LevelError
	case o.Outcome == Unhandled:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
