package idemotel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// Settings are the settings of [New]. The zero value has the defaults.
type Settings struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider().
	TracerProvider trace.TracerProvider

	// MeterProvider takes the metrics. Default: otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
}

// Telemetry traces and measures receivers of events. One is enough for a program. The methods
// WatchQueues and WatchHealth of its [gauge.States] have gauges read of a provider's queues,
// and of a health.
type Telemetry struct {
	gauge.States
	tracer  trace.Tracer
	metrics *metrics
}

// scope names this package to OpenTelemetry.
const scope = "github.com/paghooks/paghooks/idem/telemetry/idemotel"

// New returns a Telemetry. It returns an error if the MeterProvider refuses a metric.
// Metrics are read until the MeterProvider is shut down.
func New(s Settings) (*Telemetry, error) {
	if s.TracerProvider == nil {
		s.TracerProvider = otel.GetTracerProvider()
	}
	if s.MeterProvider == nil {
		s.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{tracer: s.TracerProvider.Tracer(scope)}
	var err error
	if t.metrics, err = newMetrics(s.MeterProvider.Meter(scope), &t.States); err != nil {
		return nil, fmt.Errorf("idemotel: the MeterProvider refused an instrument: see its views: %w", err)
	}
	return t, nil
}

// Instrument traces and measures the events of a receiver. It sets its Tracer, and
// has its backlog read for the gauges:
//
//	telemetry.Instrument(inbox)
//
// Call it once for each receiver, after its handlers are registered and before the first
// event. It panics if inbox already has a Tracer.
func (t *Telemetry) Instrument(inbox *idem.Inbox) {
	t.InstrumentEndpoint(&inbox.Endpoint)
	t.WatchBacklog(inbox.SourceName(), inbox.Stats)
}

// InstrumentEndpoint traces and measures the deliveries to an endpoint that stores nothing:
//
//	telemetry.InstrumentEndpoint(&relay.Endpoint)
func (t *Telemetry) InstrumentEndpoint(in *idem.Endpoint) {
	if in.Tracer != nil {
		panic("idemotel: the receiver has a Tracer already: instrument it once")
	}
	in.Tracer = tracer{t, in.SourceName()}
	gauge.Begin(in, t.metrics.recordIn(context.Background()))
}

// tracer is the [idem.Tracer] of a source.
type tracer struct {
	*Telemetry
	source string
}

// Start implements [idem.Tracer].
func (t tracer) Start(ctx context.Context, s idem.Span) (context.Context, func(idem.Observation)) {
	ctx, span := t.tracer.Start(ctx, name(s), t.options(ctx, s)...)
	return ctx, func(o idem.Observation) {
		gauge.Observe(o, t.metrics.recordIn(ctx))
		end(span, o)
	}
}

// Carrier implements [idem.Tracer]. It returns the traceparent of a delivery whose span is sampled.
func (tracer) Carrier(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	header := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, header)
	return header.Get("traceparent")
}

// name returns a span's name, of which there are few.
func name(s idem.Span) string {
	if s.Label == "" {
		return "webhook " + string(s.Stage)
	}
	return "webhook " + string(s.Stage) + " " + s.Label
}

func (t tracer) options(ctx context.Context, s idem.Span) []trace.SpanStartOption {
	return append(relation(ctx, s), trace.WithTimestamp(s.Begun), trace.WithAttributes(t.attributes(s.Event)...))
}

// relation sets the parent and the links of a span.
func relation(ctx context.Context, s idem.Span) []trace.SpanStartOption {
	around := trace.SpanContextFromContext(ctx)
	if s.Stage == idem.StageDelivery && around.IsValid() && !around.IsRemote() {
		return []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal)}
	}
	kind := trace.SpanKindServer
	if s.Stage == idem.StageAttempt {
		kind = trace.SpanKindConsumer
	}
	var links []trace.Link
	for _, to := range []trace.SpanContext{stored(s.Carrier), around} {
		if to.IsValid() {
			links = append(links, trace.Link{SpanContext: to})
		}
	}
	return []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(kind), trace.WithLinks(links...)}
}

// stored returns the span that a carrier names.
func stored(carrier string) trace.SpanContext {
	header := propagation.MapCarrier{"traceparent": carrier}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), header))
}

// attributes describe an event: its names, never a person.
func (t tracer) attributes(e idem.Event) []attribute.KeyValue {
	a := append(make([]attribute.KeyValue, 0, 4), attribute.String("webhook.source", t.source))
	if e.ID == "" {
		return a
	}
	a = append(a, attribute.String("webhook.type", e.Type), attribute.String("webhook.event.id", e.ID))
	if e.Scope != "" {
		a = append(a, attribute.String("webhook.scope", valid(e.Scope)))
	}
	return a
}

// end ends a span with its result.
func end(span trace.Span, o idem.Observation) {
	defer span.End()
	if !span.IsRecording() || o.Outcome == "" {
		return
	}
	a := append(make([]attribute.KeyValue, 0, 3), attribute.String("webhook.outcome", string(o.Outcome)))
	if refusal, ok := errors.AsType[*idem.Refusal](o.Err); ok && o.Outcome == idem.Refused {
		a = append(a, attribute.String("webhook.reason", string(refusal.Reason)))
	}
	if o.Conflict {
		a = append(a, attribute.Bool("webhook.conflict", true))
	}
	span.SetAttributes(a...)
	if failed(o) {
		span.SetStatus(codes.Error, valid(o.Err.Error()))
	}
}

// valid replaces bytes for which exporters would drop a whole batch.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// failed reports whether the application or its database caused the error, and not the sender of the
// delivery.
func failed(o idem.Observation) bool {
	return o.Err != nil && o.Outcome != idem.Refused && o.Outcome != idem.Rejected
}
