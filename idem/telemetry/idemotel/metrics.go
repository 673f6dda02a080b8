package idemotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// metrics are the instruments of the metrics that package gauge describes.
type metrics struct {
	counters   map[*gauge.Metric]metric.Int64Counter
	histograms map[*gauge.Metric]metric.Float64Histogram
	gauges     map[*gauge.Metric]metric.Float64ObservableGauge
}

func newMetrics(meter metric.Meter, states *gauge.States) (*metrics, error) {
	m := &metrics{
		counters:   make(map[*gauge.Metric]metric.Int64Counter),
		histograms: make(map[*gauge.Metric]metric.Float64Histogram),
		gauges:     make(map[*gauge.Metric]metric.Float64ObservableGauge),
	}
	var errs []error
	var read []metric.Observable
	for _, d := range gauge.Metrics() {
		var err error
		unit, help := metric.WithUnit(d.Unit), metric.WithDescription(d.Help)
		switch d.Kind {
		case gauge.Counter:
			m.counters[d], err = meter.Int64Counter(d.Name, unit, help)
		case gauge.Histogram:
			m.histograms[d], err = meter.Float64Histogram(d.Name, unit, help, metric.WithExplicitBucketBoundaries(d.Bounds...))
		case gauge.Gauge:
			m.gauges[d], err = meter.Float64ObservableGauge(d.Name, unit, help)
			read = append(read, m.gauges[d])
		}
		errs = append(errs, err)
	}
	_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error { // when a MeterProvider collects
		err := states.Read(ctx, func(d *gauge.Metric, value float64, labels ...string) {
			o.ObserveFloat64(m.gauges[d], value, attributesOf(d, labels))
		})
		if err != nil {
			return fmt.Errorf("idemotel: %w", err)
		}
		return nil
	}, read...)
	return m, errors.Join(append(errs, err)...)
}

// recordIn returns a function for counters and histograms.
func (m *metrics) recordIn(ctx context.Context) gauge.Record {
	return func(d *gauge.Metric, value float64, labels ...string) {
		if d.Kind == gauge.Counter {
			m.counters[d].Add(ctx, int64(value), attributesOf(d, labels))
		} else {
			m.histograms[d].Record(ctx, value, attributesOf(d, labels))
		}
	}
}

func attributesOf(d *gauge.Metric, labels []string) metric.MeasurementOption {
	attributes := make([]attribute.KeyValue, len(labels))
	for i, value := range labels {
		attributes[i] = attribute.String(d.Labels[i], value)
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
