package idemotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/gauge"
	"github.com/paghooks/paghooks/idem/health"
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
const scope = "github.com/paghooks/paghooks/idem/idemotel"

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

// InstrumentEndpoint traces and measures the deliveries to an endpoint that stores nothing, as
// Instrument does those to a receiver:
//
//	telemetry.InstrumentEndpoint(&relay.Endpoint)
func (t *Telemetry) InstrumentEndpoint(in *idem.Endpoint) {
	if in.Tracer != nil {
		panic("idemotel: the receiver has a Tracer already: instrument it once")
	}
	in.Tracer = tracer{t, in.SourceName()}
	t.metrics.begin(in.SourceName(), in.Types())
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
	t.metrics.states.SetChecks(func() []idem.Check { return report().Checks })
}
