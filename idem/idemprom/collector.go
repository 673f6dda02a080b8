package idemprom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/gauge"
	"github.com/paghooks/paghooks/idem/health"
)

// Collector measures receivers of events. It is a [prometheus.Collector]; one is
// enough for a program.
type Collector struct {
	counters *counters
	gauges   *gauges
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector that measures nothing yet.
func NewCollector() *Collector {
	return &Collector{counters: newCounters(), gauges: newGauges()}
}

// Instrument measures the events of a receiver, and has its backlog read for the
// gauges:
//
//	collector.Instrument(&inbox.Common)
//
// Call it once for each receiver, after its handlers are registered and before the first
// event. It sets the receiver's Observe to a function that also calls the one that was
// there.
func (c *Collector) Instrument(common *idem.Common) {
	c.InstrumentEndpoint(&common.Endpoint)
	c.gauges.backlogs.Add(common.SourceName(), common.Stats)
}

// InstrumentEndpoint measures the deliveries to an endpoint that stores nothing, as Instrument does
// those to a receiver:
//
//	collector.InstrumentEndpoint(&relay.Endpoint)
func (c *Collector) InstrumentEndpoint(in *idem.Endpoint) {
	c.counters.begin(in.SourceName(), in.Types())
	former := in.Observe
	in.Observe = func(ctx context.Context, o idem.Observation) {
		c.counters.count(o)
		if former != nil {
			former(ctx, o)
		}
	}
}

// WatchQueues has a provider's queues read for the gauges. source is the name of the
// source of the events that they hold, "asaas" for example. read is the method Queues of
// a [gauge.Queues].
//
// Each process calls read up to 2,880 times in 12 hours. Asaas allows an account
// 25,000 calls of its API in that time: if many processes share an account, let only
// a few of them watch.
func (c *Collector) WatchQueues(source string, read func(context.Context) ([]gauge.Queue, error)) {
	c.gauges.queues.Add(source, read)
}

// WatchHealth has the checks of a health read for the gauge webhook_healthy:
//
//	collector.WatchHealth(h.Report)
//
// Most alerts are about it. A collector has one health; further calls have no effect.
func (c *Collector) WatchHealth(report func() health.Report) {
	c.gauges.checks.Add("", func(context.Context) ([]idem.Check, error) { return report().Checks, nil })
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	c.counters.describe(descs)
	c.gauges.describe(descs)
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	c.counters.collect(metrics)
	c.gauges.collect(metrics)
}
