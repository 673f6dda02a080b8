package idemprom

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// Collector measures receivers of events. It is a [prometheus.Collector]; one is
// enough for a program. The methods WatchQueues and WatchHealth of its [gauge.States] have
// gauges read of a provider's queues, and of a health.
type Collector struct {
	gauge.States
	counters   map[*gauge.Metric]*prometheus.CounterVec
	histograms map[*gauge.Metric]*prometheus.HistogramVec
	gauges     map[*gauge.Metric]*prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector that measures nothing yet.
func NewCollector() *Collector {
	c := &Collector{
		counters:   make(map[*gauge.Metric]*prometheus.CounterVec),
		histograms: make(map[*gauge.Metric]*prometheus.HistogramVec),
		gauges:     make(map[*gauge.Metric]*prometheus.Desc),
	}
	for _, m := range gauge.Metrics() {
		switch m.Kind {
		case gauge.Counter:
			c.counters[m] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: nameOf(m), Help: m.Help}, m.Labels)
		case gauge.Histogram:
			c.histograms[m] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: nameOf(m), Help: m.Help, Buckets: m.Bounds}, m.Labels)
		case gauge.Gauge:
			c.gauges[m] = prometheus.NewDesc(nameOf(m), m.Help, m.Labels, nil)
		}
	}
	return c
}

// nameOf returns a metric's name as exporters from OpenTelemetry to Prometheus spell it.
func nameOf(m *gauge.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == gauge.Counter {
		name += "_total"
	}
	return name
}

// Instrument measures the events of a receiver, and has its backlog read for the
// gauges:
//
//	collector.Instrument(inbox)
//
// Call it once for each receiver, after its handlers are registered and before the first
// event. It sets the receiver's Observe to a function that also calls the one that was
// there.
func (c *Collector) Instrument(inbox *idem.Inbox) {
	c.InstrumentEndpoint(&inbox.Endpoint)
	c.WatchBacklog(inbox.SourceName(), inbox.Stats)
}

// InstrumentEndpoint measures the deliveries to an endpoint that stores nothing:
//
//	collector.InstrumentEndpoint(&relay.Endpoint)
func (c *Collector) InstrumentEndpoint(in *idem.Endpoint) {
	gauge.Begin(in, c.record)
	former := in.Observe
	in.Observe = func(ctx context.Context, o idem.Observation) {
		gauge.Observe(o, c.record)
		if former != nil {
			former(ctx, o)
		}
	}
}

// record adds to a counter or a histogram.
func (c *Collector) record(m *gauge.Metric, value float64, labels ...string) {
	if m.Kind == gauge.Counter {
		c.counters[m].WithLabelValues(labels...).Add(value)
	} else {
		c.histograms[m].WithLabelValues(labels...).Observe(value)
	}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, v := range c.counters {
		v.Describe(descs)
	}
	for _, v := range c.histograms {
		v.Describe(descs)
	}
	for _, d := range c.gauges {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, v := range c.counters {
		v.Collect(metrics)
	}
	for _, v := range c.histograms {
		v.Collect(metrics)
	}
	// A scrape has no place for an error: webhook_backlog_up and webhook_queue_up say that there was one.
	_ = c.Read(context.Background(), func(m *gauge.Metric, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(c.gauges[m], prometheus.GaugeValue, value, labels...)
	})
}
