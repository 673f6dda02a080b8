package idemotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/paghooks/paghooks/idem"
)

// metrics are the instruments that count when a delivery or an attempt ends.
type metrics struct {
	deliveries, attempts, refused, conflicts metric.Int64Counter
	deliveryTime, attemptTime, lag, relayed  metric.Float64Histogram
}

// Providers wait for seconds, handlers of an inbox may take more, and the lag is
// up to the days that a provider keeps events.
var (
	durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	lags      = []float64{.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 3 * 86_400, 14 * 86_400}
)

func newMetrics(in *instruments) *metrics {
	return &metrics{
		deliveries:   in.counter("webhook.deliveries", "{delivery}", "Deliveries, by what became of them."),
		attempts:     in.counter("webhook.attempts", "{attempt}", "Attempts of an inbox's workers and of replays, by what became of them."),
		refused:      in.counter("webhook.refused", "{delivery}", "Deliveries that are not genuine."),
		conflicts:    in.counter("webhook.conflicts", "{delivery}", "Deliveries with the id of an event that has another body."),
		deliveryTime: in.histogram("webhook.delivery.duration", "From the first byte of a delivery to its answer.", durations),
		attemptTime:  in.histogram("webhook.attempt.duration", "From the start of an attempt to its end.", durations),
		lag:          in.histogram("webhook.lag", "From the provider's time of an event to the commit of its work.", lags),
		relayed:      in.histogram("webhook.relay.lag", "From a relay's publishing of an event to its arrival at a consumer.", lags),
	}
}

// Outcomes that alerts are about. Their counters exist from the start: of one that begins
// at 5, Prometheus sees no increase.
var (
	badDeliveries = []idem.Outcome{idem.Retrying, idem.Unknown, idem.Published}
	badAttempts   = []idem.Outcome{idem.Retrying, idem.Unknown, idem.Parked}
)

// begin makes the counters of a source that has handlers for these types.
func (m *metrics) begin(name string, types []string) {
	ctx, source := context.Background(), attribute.String("source", name)
	m.conflicts.Add(ctx, 0, metric.WithAttributes(source))
	m.refused.Add(ctx, 0, metric.WithAttributes(source, attribute.String("reason", string(idem.ReasonNotConfigured))))
	for _, label := range append(types, idem.OtherTypes) {
		of := func(o idem.Outcome) metric.MeasurementOption {
			return metric.WithAttributes(source, attribute.String("type", label), attribute.String("outcome", string(o)))
		}
		for _, o := range badDeliveries {
			m.deliveries.Add(ctx, 0, of(o))
		}
		for _, o := range badAttempts {
			m.attempts.Add(ctx, 0, of(o))
		}
	}
}

// record counts an observation. One without an outcome is nothing: another worker
// or an earlier event had to go first.
func (m *metrics) record(ctx context.Context, o idem.Observation) {
	if o.Outcome == "" {
		return
	}
	source, eventType := attribute.String("source", o.Source), attribute.String("type", o.Label)
	ofType := metric.WithAttributes(source, eventType)
	ends, took := m.deliveries, m.deliveryTime
	if o.Stage == idem.StageAttempt {
		ends, took = m.attempts, m.attemptTime
	}
	ends.Add(ctx, 1, metric.WithAttributes(source, eventType, attribute.String("outcome", string(o.Outcome))))
	took.Record(ctx, o.Duration.Seconds(), ofType)
	if lag, ok := o.Lag(); ok {
		m.lag.Record(ctx, lag.Seconds(), ofType)
	}
	if o.Relayed > 0 {
		m.relayed.Record(ctx, o.Relayed.Seconds(), metric.WithAttributes(source))
	}
	if reason, ok := reasonOf(o); ok {
		m.refused.Add(ctx, 1, metric.WithAttributes(source, attribute.String("reason", reason)))
	}
	if o.Conflict {
		m.conflicts.Add(ctx, 1, metric.WithAttributes(source))
	}
}
