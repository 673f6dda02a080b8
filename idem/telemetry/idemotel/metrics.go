package idemotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// metrics are the instruments of the metrics that package gauge describes.
type metrics struct {
	counters   map[*gauge.Metric]metric.Int64Counter
	histograms map[*gauge.Metric]metric.Float64Histogram
	counts     map[*gauge.Metric]metric.Int64ObservableGauge
	seconds    map[*gauge.Metric]metric.Float64ObservableGauge
	states     gauge.States
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{
		counters:   make(map[*gauge.Metric]metric.Int64Counter),
		histograms: make(map[*gauge.Metric]metric.Float64Histogram),
		counts:     make(map[*gauge.Metric]metric.Int64ObservableGauge),
		seconds:    make(map[*gauge.Metric]metric.Float64ObservableGauge),
	}
	var errs []error
	var read []metric.Observable
	for _, d := range gauge.Metrics() {
		var err error
		unit, help := metric.WithUnit(d.Unit), metric.WithDescription(d.Help)
		switch {
		case d.Kind == gauge.Counter:
			m.counters[d], err = meter.Int64Counter(d.Name, unit, help)
		case d.Kind == gauge.Histogram:
			m.histograms[d], err = meter.Float64Histogram(d.Name, unit, help, metric.WithExplicitBucketBoundaries(d.Bounds...))
		case d.Unit == "s":
			m.seconds[d], err = meter.Float64ObservableGauge(d.Name, unit, help)
			read = append(read, m.seconds[d])
		default:
			m.counts[d], err = meter.Int64ObservableGauge(d.Name, unit, help)
			read = append(read, m.counts[d])
		}
		errs = append(errs, err)
	}
	_, err := meter.RegisterCallback(m.observeStates, read...)
	return m, errors.Join(append(errs, err)...)
}

// record counts an observation.
func (m *metrics) record(ctx context.Context, o idem.Observation) { gauge.Observe(o, m.recordIn(ctx)) }

func (m *metrics) recordIn(ctx context.Context) gauge.Record {
	return func(d *gauge.Metric, value float64, labels ...string) {
		if d.Kind == gauge.Counter {
			m.counters[d].Add(ctx, int64(value), attributesOf(d, labels))
		} else {
			m.histograms[d].Record(ctx, value, attributesOf(d, labels))
		}
	}
}

// observeStates is called when a MeterProvider collects.
func (m *metrics) observeStates(ctx context.Context, o metric.Observer) error {
	err := m.states.Read(ctx, func(d *gauge.Metric, value float64, labels ...string) {
		if seconds, ok := m.seconds[d]; ok {
			o.ObserveFloat64(seconds, value, attributesOf(d, labels))
		} else {
			o.ObserveInt64(m.counts[d], int64(value), attributesOf(d, labels))
		}
	})
	if err != nil {
		return fmt.Errorf("idemotel: %w", err)
	}
	return nil
}

func attributesOf(d *gauge.Metric, labels []string) metric.MeasurementOption {
	attributes := make([]attribute.KeyValue, len(labels))
	for i, value := range labels {
		attributes[i] = attribute.String(d.Labels[i], value)
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// messaging holds the names of the semantic conventions for messaging, version 1.43:
// https://opentelemetry.io/docs/specs/semconv/messaging/messaging-metrics/
type messaging struct {
	consumed metric.Int64Counter
	process  metric.Float64Histogram
}

// messagingDurations are the conventions' buckets for the duration of processing.
var messagingDurations = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

func newMessaging(meter metric.Meter) (*messaging, error) {
	consumed, err := meter.Int64Counter("messaging.client.consumed.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Number of messages that were delivered to the application."))
	process, err2 := meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of processing operation."), metric.WithExplicitBucketBoundaries(messagingDurations...))
	return &messaging{consumed, process}, errors.Join(err, err2)
}

const (
	messagingSystem    = "webhook"
	messagingOperation = "process"
)

// record counts an event that was processed, well or not. m may be nil.
func (m *messaging) record(ctx context.Context, o idem.Observation) {
	if m == nil || !handled(o.Outcome) || o.Event.ID == "" {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", messagingSystem),
		attribute.String("messaging.operation.name", messagingOperation),
		attribute.String("messaging.destination.name", o.Source),
	}
	if o.Err != nil {
		attributes = append(attributes, attribute.String("error.type", string(o.Outcome)))
	}
	m.consumed.Add(ctx, 1, metric.WithAttributes(attributes...))
	m.process.Record(ctx, o.Duration.Seconds(), metric.WithAttributes(attributes...))
}

// handled reports whether an outcome is the outcome of processing. Storing a delivery in an inbox is
// not processing.
func handled(o idem.Outcome) bool {
	switch o {
	case idem.Done, idem.Retrying, idem.Parked, idem.Unknown:
		return true
	}
	return false
}

func messagingAttributes(source string, e idem.Event) []attribute.KeyValue {
	a := []attribute.KeyValue{
		attribute.String("messaging.system", messagingSystem),
		attribute.String("messaging.operation.name", messagingOperation),
		attribute.String("messaging.operation.type", messagingOperation),
		attribute.String("messaging.destination.name", source),
	}
	if e.ID != "" {
		a = append(a, attribute.String("messaging.message.id", e.ID))
	}
	return a
}
