package idem

import (
	"context"
	"log/slog"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/redact"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// label is the label of an event.
func (in *Endpoint) label(e Event) string {
	if e.ID == "" {
		return ""
	}
	handler, ok := in.source.(interface{ Handles(eventType string) bool })
	known := in.ignores(e)
	if ok && !known {
		_ = pgtx.Protect(func() error { known = handler.Handles(e.Type); return nil })
	}
	if known {
		return e.Type
	}
	return OtherTypes
}

// observe logs an observation, and gives it to the application. A panic of its
// code is logged, and has no other effect.
func (in *Endpoint) observe(ctx context.Context, o Observation) {
	_ = pgtx.Protect(func() error { in.log(ctx, o); return nil }) // a panic of the logger cannot be reported
	if in.Observe == nil {
		return
	}
	if err := pgtx.Protect(func() error { in.Observe(ctx, o); return nil }); err != nil {
		in.logError(ctx, "webhook Observe function failed", o.Event, err)
	}
}

func (in *Endpoint) log(ctx context.Context, o Observation) {
	level, message := o.level(), "webhook "+string(o.Outcome)
	if o.Outcome == Done && !in.hasDone.Load() && in.hasDone.CompareAndSwap(false, true) {
		level, message = slog.LevelInfo, "webhook done, the first of this process: later ones are logged as debug"
	}
	if in.Logger == nil || !in.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("outcome", string(o.Outcome)),
		slog.String("stage", string(o.Stage)),
		slog.String("source", o.Source),
		slog.Duration("duration", o.Duration),
	}
	if o.Event.ID != "" {
		attrs = append(attrs, nameAttrs(o.Event)...)
	}
	if o.Path != "" {
		attrs = append(attrs, slog.String("path", o.Path))
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("error", o.Err.Error()))
	}
	in.Logger.LogAttrs(ctx, level, message, attrs...)
}

// logError logs an error beside an event, or without one.
func (in *Endpoint) logError(ctx context.Context, message string, e Event, err error) {
	attrs := []slog.Attr{slog.String("source", in.source.Name()), slog.String("error", redact.Text(explain(err).Error(), err))}
	if e.ID != "" {
		attrs = append(attrs, nameAttrs(e)...)
	}
	in.logAttrs(ctx, slog.LevelError, message, attrs)
}

// logFirstConflict logs, once for an event, that two bodies have its id.
func (in *Endpoint) logFirstConflict(ctx context.Context, e Event, found store.Found) {
	if !found.FirstConflict {
		return
	}
	in.logAttrs(ctx, slog.LevelWarn, "webhook conflict: another body is stored with this event id, and only one of them is processed; "+
		"see whether the id was used twice, or two accounts deliver to one address without scopes (and see operator.Operator.Rescope before you introduce any)",
		append(nameAttrs(e), slog.String("source", e.Source)))
}

// logAttrs logs a line, unless the logger panics.
func (in *Endpoint) logAttrs(ctx context.Context, level slog.Level, message string, attrs []slog.Attr) {
	if in.Logger == nil {
		return
	}
	_ = pgtx.Protect(func() error { in.Logger.LogAttrs(ctx, level, message, attrs...); return nil })
}

func nameAttrs(e Event) []slog.Attr {
	return []slog.Attr{slog.String("scope", e.Scope), slog.String("id", e.ID), slog.String("type", e.Type)}
}
