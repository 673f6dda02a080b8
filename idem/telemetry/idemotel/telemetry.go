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
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// Settings are the settings of [New]. The zero value has the defaults.
type Settings struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider().
	TracerProvider trace.TracerProvider

	// MeterProvider takes the metrics. Default: otel.GetMeterProvider().
	MeterProvider metric.MeterProvider

	// Messaging adds the names of OpenTelemetry's semantic conventions for
	// messaging: the metrics messaging.client.consumed.messages and
	// messaging.process.duration, and the attributes messaging.* of spans. They are
	// those of version 1.43, which is in development: a new version of this module
	// may change them. Default: false.
	Messaging bool
}

// Telemetry traces and measures receivers of events. One is enough for a program.
type Telemetry struct {
	tracer    trace.Tracer
	metrics   *metrics
	messaging *messaging // nil if it is not wanted
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
	meter := s.MeterProvider.Meter(scope)
	t := &Telemetry{tracer: s.TracerProvider.Tracer(scope)}
	var err, err2 error
	t.metrics, err = newMetrics(meter)
	if s.Messaging {
		t.messaging, err2 = newMessaging(meter)
	}
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("idemotel: the MeterProvider refused an instrument: see its views: %w", err)
	}
	return t, nil
}

// Instrument traces and measures the events of a receiver. It sets its Tracer, and
// has its backlog read for the gauges:
//
//	telemetry.Instrument(&inbox.Common)
//
// Call it once for each receiver, after its handlers are registered and before the first
// event. It panics if c already has a Tracer.
func (t *Telemetry) Instrument(c *idem.Common) {
	t.InstrumentEndpoint(&c.Endpoint)
	t.metrics.states.AddBacklog(c.SourceName(), c.Stats)
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

// WatchQueues has a provider's queues read for the gauges. source is the name of the
// source of the events that they hold, "asaas" for example. read is the method Queues of
// a [gauge.Queues].
//
// Each process calls read up to 2,880 times in 12 hours. Asaas allows an account
// 25,000 calls of its API in that time: if many processes share an account, let only
// a few of them watch.
func (t *Telemetry) WatchQueues(source string, read func(context.Context) ([]gauge.Queue, error)) {
	t.metrics.states.AddQueues(source, read)
}

// WatchHealth has the checks of a health read for the gauge webhook.healthy:
//
//	telemetry.WatchHealth(h.Report)
//
// Most alerts are about it. There is one health; further calls have no effect.
func (t *Telemetry) WatchHealth(report func() health.Report) {
	t.metrics.states.SetChecks(func() []check.Result { return report().Checks })
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
		t.metrics.record(ctx, o)
		t.messaging.record(ctx, o)
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
	options := append(relation(ctx, s), trace.WithTimestamp(s.Begun), trace.WithAttributes(t.attributes(s.Event)...))
	if t.messaging != nil {
		options = append(options, trace.WithAttributes(messagingAttributes(t.source, s.Event)...))
	}
	return options
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
	if carrier == "" {
		return trace.SpanContext{}
	}
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
	if reason, ok := reasonOf(o); ok {
		a = append(a, attribute.String("webhook.reason", reason))
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

// reasonOf returns the reason for which a delivery was refused.
func reasonOf(o idem.Observation) (reason string, ok bool) {
	var refusal *idem.Refusal
	if o.Outcome != idem.Refused || !errors.As(o.Err, &refusal) {
		return "", false
	}
	return string(refusal.Reason), true
}
