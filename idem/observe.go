package idem

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/redact"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Stage is the subject of an [Observation].
type Stage string

const (
	StageDelivery Stage = "delivery" // a delivery, from its first byte or from Accept to the answer
	StageAttempt  Stage = "attempt"  // an attempt of an inbox's worker, or of Replay
)

// Observation is the result of a delivery, or of an attempt at a stored event. See
// [Endpoint.Observe].
type Observation struct {
	Source   string // the source's name, also when the delivery is refused
	Stage    Stage
	Event    Event // zero before the delivery is verified and named
	Outcome  Outcome
	Path     string // the first 200 bytes of the URL's path, when refused: it names the account where each account has its own
	Err      error  // why it failed, was parked or was refused; a *[Refusal] when refused
	Duration time.Duration

	// Relayed is the time that the delivery was with a broker, from the relay on; 0 if it did not come
	// through a broker. The relay and this process have two clocks: where the relay's is ahead, Relayed is a
	// nanosecond.
	Relayed time.Duration

	// Label is the event's type, for metrics: "_other" if the application neither
	// handles nor ignores the type, so that strangers cannot add series, and "" if
	// the delivery was refused.
	Label string

	// Conflict is set if another body is stored with the event's id: the id was used twice, or two accounts
	// share an address. Only one of the two events is processed. See operator.Operator.Conflicts.
	Conflict bool

	// AtLast is set if the outcome is [Done], and the event had failed before, or waited for one that had.
	AtLast bool
}

// Tracer makes spans of deliveries and attempts; package idemotel has one for OpenTelemetry. Its methods are
// called from many goroutines at once, and must not block: deliveries and attempts wait for them. A panic of a
// method is logged and has no other effect.
type Tracer interface {
	// Start is called once a delivery is verified and named, or refused, and when a worker or Replay begins
	// an attempt. The handler's context derives from traced; a nil traced stands for ctx. end, which may be
	// nil, is called once, with the outcome of the delivery or the attempt; the Outcome is "" if no attempt
	// was made, because another worker or an earlier event came first.
	Start(ctx context.Context, s Span) (traced context.Context, end func(Observation))

	// Carrier returns the trace of a delivery as a text, a traceparent for example. ctx is the context that
	// Start returned. An inbox stores the text with the event, for the [Span] of each attempt. "" stores
	// nothing.
	Carrier(ctx context.Context) string
}

// Span is a delivery or an attempt that begins.
type Span struct {
	Stage Stage
	Event Event     // zero if a delivery was refused
	Label string    // see [Observation]
	Begun time.Time // when the first byte of a delivery arrived: a little before Start

	// Carrier is the Tracer's Carrier of the delivery that stored the event, in attempts at events of an
	// [Inbox]. The delivery may be days old: make it a link, not the parent.
	Carrier string
}

// span is a delivery or an attempt that has begun.
type span struct {
	endpoint *Endpoint
	Span
	end func(Observation) // the Tracer's; may be nil
}

// startSpan begins a span. The caller must call report in the end.
func (ep *Endpoint) startSpan(ctx context.Context, stage Stage, e Event, carrier string, begun time.Time) (context.Context, *span) {
	s := &span{endpoint: ep, Span: Span{Stage: stage, Event: e, Label: ep.label(e), Begun: begun, Carrier: carrier}}
	if ep.Tracer == nil {
		return ctx, s
	}
	type opened struct {
		ctx context.Context
		end func(Observation)
	}
	t := call(ctx, ep, "Tracer", e, func() (b opened) { b.ctx, b.end = ep.Tracer.Start(ctx, s.Span); return b })
	s.end = t.end
	if t.ctx == nil {
		t.ctx = ctx
	}
	return t.ctx, s
}

// label returns the label of an event: see [Observation].
func (ep *Endpoint) label(e Event) string {
	if e.ID == "" {
		return ""
	}
	handler, ok := ep.source.(interface{ Handles(eventType string) bool })
	known := e.Type == UnreadableType || ep.ignores(e)
	if ok && !known {
		_ = pgtx.Protect(func() error { known = handler.Handles(e.Type); return nil })
	}
	if known {
		return e.Type
	}
	return inside.OtherTypes
}

// carrier returns the Tracer's Carrier, to store it with an event; "" without a Tracer.
func (ep *Endpoint) carrier(ctx context.Context, e Event) string {
	if ep.Tracer == nil {
		return ""
	}
	text := call(ctx, ep, "Tracer", e, func() string { return ep.Tracer.Carrier(ctx) })
	if !store.Nameable(text) {
		return ""
	}
	return text
}

// report reports the outcome of a span to the application. Without an outcome, report calls only the Tracer.
func (s *span) report(ctx context.Context, o Observation) {
	ep := s.endpoint
	o.Source, o.Stage, o.Label, o.Duration = ep.source.Name(), s.Stage, s.Label, time.Since(s.Begun)
	ep.countFailures(o)
	if o.Outcome != "" {
		ep.observe(ctx, o)
	}
	if s.end != nil {
		call(ctx, ep, "Tracer", o.Event, func() (none struct{}) { s.end(o); return none })
	}
}

// call calls an Observe function or a Tracer, and returns its result. A panic is logged, and has no other effect.
func call[T any](ctx context.Context, ep *Endpoint, name string, e Event, f func() T) (result T) {
	if err := pgtx.Protect(func() error { result = f(); return nil }); err != nil {
		ep.logError(ctx, "webhook "+name+" failed", e, err)
	}
	return result
}

// countFailures counts the deliveries in a row that were not acknowledged, and the events
// in a row that workers failed to process.
func (ep *Endpoint) countFailures(o Observation) {
	if o.Stage != StageDelivery {
		switch o.Outcome {
		case Done:
			ep.failing.Done()
		case Retrying, Parked:
			ep.failing.Failed(o.Event.Scope + "/" + o.Event.ID)
		}
		return
	}
	refusal, refused := errors.AsType[*Refusal](o.Err)
	switch {
	case o.Outcome.Acknowledged():
		ep.failures.Done()
	case refused && refusal.isOwnFault(): // other refused deliveries may be a stranger's
		ep.failures.Failed(string(refusal.Reason), refusal.Hint)
	case o.Outcome == Retrying, o.Outcome == Unknown:
		ep.failures.Failed(reasonOf(o.Err))
	}
}

// reasonOf returns the reason of a failed genuine delivery for package health, and the remedy if that is the same in
// every program.
func reasonOf(err error) (reason, hint string) {
	rejected, is := errors.AsType[*rejection](err)
	switch {
	case is:
		return string(rejected.reason), rejected.says
	case pgtx.WorkFailed(err):
		return "handler_failed", ""
	}
	return "not_stored", ""
}

// observe logs an observation, and calls Observe. A panic of Observe is logged, and has no other effect.
func (ep *Endpoint) observe(ctx context.Context, o Observation) {
	_ = pgtx.Protect(func() error { ep.log(ctx, o); return nil }) // a panic of the logger cannot be reported
	if ep.Observe != nil {
		call(ctx, ep, "Observe function", o.Event, func() (none struct{}) { ep.Observe(ctx, o); return none })
	}
}

func (ep *Endpoint) log(ctx context.Context, o Observation) {
	level, message := o.level(), "webhook "+string(o.Outcome)
	more := 0
	switch {
	case o.Outcome == Refused, o.Outcome == Rejected:
	case ep.isOutage(o.Err):
		says := false
		if says, more = ep.outages.Failed(); !says {
			return
		}
	case o.Err == nil && o.Outcome != Ignored:
		ep.logEnd(ctx)
	}
	if o.AtLast {
		message = "webhook done at last: it had failed, or waited for one that had"
	}
	if o.Outcome == Done && !ep.hasDone.Load() && ep.hasDone.CompareAndSwap(false, true) {
		level, message = slog.LevelInfo, message+", the first of this process: later ones are logged as debug"
	}
	if ep.Logger == nil || !ep.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("outcome", string(o.Outcome)),
		slog.String("stage", string(o.Stage)),
		slog.Duration("duration", o.Duration),
	}
	attrs = append(attrs, nameAttrs(o.Event)...)
	if o.Path != "" {
		attrs = append(attrs, slog.String("path", o.Path))
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("error", o.Err.Error()))
	}
	ep.logAttrs(ctx, level, message, append(attrs, moreAttr(more)...)...)
}

// moreAttr says how many lines an outage has spared the log since the last one.
func moreAttr(more int) []slog.Attr {
	if more == 0 {
		return nil
	}
	return []slog.Attr{slog.Int("more_in_this_outage", more)}
}

// isOutage reports whether err affects every event: Postgres, or the broker of an outbox or a relay, is away. Errors of
// handlers do not.
func (ep *Endpoint) isOutage(err error) bool {
	_, rejected := errors.AsType[*rejection](err) // the sender's connection may have been lost
	return err != nil && !rejected && (ep.outage().IsWhole() || !pgtx.WorkFailed(err) && pgtx.Unavailable(err))
}

// logAway is logError for an error that may be one of many in an outage.
func (ep *Endpoint) logAway(ctx context.Context, message string, e Event, err error) {
	if !ep.isOutage(err) {
		ep.logError(ctx, message, e, err)
		return
	}
	if says, more := ep.outages.Failed(); says {
		ep.logError(ctx, message, e, err, moreAttr(more)...)
	}
}

// logEnd logs that an outage is over, if there was one. Call it after a success.
func (ep *Endpoint) logEnd(ctx context.Context) {
	if ep.outage().IsWhole() {
		return // Postgres is there, and the broker is not
	}
	if lasted, failures, over := ep.outages.Done(); over {
		ep.logAttrs(ctx, slog.LevelWarn, "webhook outage is over",
			slog.Duration("lasted", lasted.Round(time.Millisecond)), slog.Int("failures", failures))
	}
}

func (o Observation) level() slog.Level {
	switch {
	case o.Outcome == Refused || o.Outcome == Rejected:
		return slog.LevelWarn
	case o.Err != nil:
		return slog.LevelError
	case o.Outcome == Unhandled, o.AtLast:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// logError logs an error beside an event, or without one.
func (ep *Endpoint) logError(ctx context.Context, message string, e Event, err error, more ...slog.Attr) {
	if !pgtx.WorkFailed(err) {
		err = redact.Own(err)
	}
	attrs := append([]slog.Attr{slog.String("error", redact.Text(store.Explain(err).Error(), err))}, more...)
	ep.logAttrs(ctx, slog.LevelError, message, append(attrs, nameAttrs(e)...)...)
}

// logFirstConflict logs, once for an event, that two bodies have its id.
func (ep *Endpoint) logFirstConflict(ctx context.Context, e Event, found store.Found) {
	if found.FirstConflict {
		ep.logAttrs(ctx, slog.LevelWarn, "webhook conflict: another body is stored with this event id, and only one of them is processed; "+
			"see whether the id was used twice, or two accounts deliver to one address without scopes (and see operator.Operator.PlanRescope before you introduce any)", nameAttrs(e)...)
	}
}

// logAttrs logs a line with the source's name, unless the logger panics.
func (ep *Endpoint) logAttrs(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	if ep.Logger == nil {
		return
	}
	attrs = append([]slog.Attr{slog.String("source", ep.source.Name())}, attrs...)
	_ = pgtx.Protect(func() error { ep.Logger.LogAttrs(ctx, level, message, attrs...); return nil })
}

// nameAttrs returns the log attributes of an event; none for the zero Event.
func nameAttrs(e Event) []slog.Attr {
	if e.ID == "" {
		return nil
	}
	return []slog.Attr{slog.String("scope", e.Scope), slog.String("id", e.ID), slog.String("type", e.Type)}
}
