package idemprom

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paghooks/paghooks/idem"
)

// counters count when a delivery or an attempt ends.
type counters struct {
	deliveries, attempts, refused, conflicts *prometheus.CounterVec
	deliveryTime, attemptTime, lag, relayed  *prometheus.HistogramVec
}

// Providers wait for seconds, handlers of an inbox may take more, and the lag is
// up to the days that a provider keeps events.
var (
	durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	lags      = []float64{.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 3 * 86_400, 14 * 86_400}
)

func newCounters() *counters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"source", "type"})
	}
	c := &counters{
		deliveries:   counter("webhook_deliveries_total", "Deliveries, by what became of them.", "source", "type", "outcome"),
		attempts:     counter("webhook_attempts_total", "Attempts of an inbox's workers and of replays, by what became of them.", "source", "type", "outcome"),
		refused:      counter("webhook_refused_total", "Deliveries that are not genuine.", "source", "reason"),
		conflicts:    counter("webhook_conflicts_total", "Deliveries with the id of an event that has another body.", "source"),
		deliveryTime: histogram("webhook_delivery_duration_seconds", "From the first byte of a delivery to its answer.", durations),
		attemptTime:  histogram("webhook_attempt_duration_seconds", "From the start of an attempt to its end.", durations),
		lag:          histogram("webhook_lag_seconds", "From the provider's time of an event to the commit of its work.", lags),
	}
	c.relayed = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "webhook_relay_lag_seconds", Help: "From a relay's publishing of an event to its arrival at a consumer.", Buckets: lags,
	}, []string{"source"})
	return c
}

// Outcomes that alerts are about. Their counters exist from the start: of one that begins
// at 5, Prometheus sees no increase.
var (
	badDeliveries = []idem.Outcome{idem.Retrying, idem.Unknown, idem.Published}
	badAttempts   = []idem.Outcome{idem.Retrying, idem.Unknown, idem.Parked}
)

// begin makes the counters of a source that has handlers for these types.
func (c *counters) begin(source string, types []string) {
	c.conflicts.WithLabelValues(source)
	c.refused.WithLabelValues(source, string(idem.ReasonNotConfigured))
	for _, label := range append(types, idem.OtherTypes) {
		for _, o := range badDeliveries {
			c.deliveries.WithLabelValues(source, label, string(o))
		}
		for _, o := range badAttempts {
			c.attempts.WithLabelValues(source, label, string(o))
		}
	}
}

// count counts an observation.
func (c *counters) count(o idem.Observation) {
	ends, took := c.deliveries, c.deliveryTime
	if o.Stage == idem.StageAttempt {
		ends, took = c.attempts, c.attemptTime
	}
	ends.WithLabelValues(o.Source, o.Label, string(o.Outcome)).Inc()
	took.WithLabelValues(o.Source, o.Label).Observe(o.Duration.Seconds())
	if lag, ok := o.Lag(); ok {
		c.lag.WithLabelValues(o.Source, o.Label).Observe(lag.Seconds())
	}
	var refusal *idem.Refusal
	if o.Outcome == idem.Refused && errors.As(o.Err, &refusal) {
		c.refused.WithLabelValues(o.Source, string(refusal.Reason)).Inc()
	}
	if o.Relayed > 0 {
		c.relayed.WithLabelValues(o.Source).Observe(o.Relayed.Seconds())
	}
	if o.Conflict {
		c.conflicts.WithLabelValues(o.Source).Inc()
	}
}

func (c *counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.deliveries, c.attempts, c.refused, c.conflicts, c.deliveryTime, c.attemptTime, c.lag, c.relayed}
}

func (c *counters) describe(descs chan<- *prometheus.Desc) {
	for _, v := range c.all() {
		v.Describe(descs)
	}
}

func (c *counters) collect(metrics chan<- prometheus.Metric) {
	for _, v := range c.all() {
		v.Collect(metrics)
	}
}
