package gauge

import (
	"errors"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/inside"
)

// Metric describes one of the metrics of package idem.
type Metric struct {
	Name   string // as OpenTelemetry spells it: webhook.delivery.duration
	Kind   Kind
	Unit   string // as UCUM spells it, s or {event} for example; "" for a gauge that is 0 or 1
	Help   string
	Labels []string
	Bounds []float64 // the upper bounds of a histogram's buckets
}

// Kind is the kind of a [Metric].
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge" // read by [States.Read]
)

// Record is called with a value of a metric, and the values of its labels in the order of
// [Metric].Labels. The value is an increment of a counter, one value of a histogram, or the state
// of a gauge.
type Record func(m *Metric, value float64, labels ...string)

// Metrics returns all metrics.
func Metrics() []*Metric { return slices.Clone(metrics) }

var metrics []*Metric

// Providers wait for seconds, handlers of an inbox may take more, and the lag is
// up to the days that a provider keeps events.
var (
	durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	lags      = []float64{.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 3 * 86_400, 14 * 86_400}
)

var (
	deliveries   = counter("webhook.deliveries", "{delivery}", "Deliveries, by what became of them.", "source", "type", "outcome")
	deliveryTime = histogram("webhook.delivery.duration", durations, "From the first byte of a delivery to its answer.", "source", "type")
	attempts     = counter("webhook.attempts", "{attempt}", "Attempts of an inbox's workers and of replays, by what became of them.", "source", "type", "outcome")
	attemptTime  = histogram("webhook.attempt.duration", durations, "From the start of an attempt to its end.", "source", "type")
	lag          = histogram("webhook.lag", lags, "From the provider's time of an event to the commit of its work.", "source", "type")
	relayed      = histogram("webhook.relay.lag", lags, "From a relay's publishing of an event to its arrival at a consumer.", "source")
	refused      = counter("webhook.refused", "{delivery}", "Deliveries that are not genuine.", "source", "reason")
	conflicts    = counter("webhook.conflicts", "{delivery}", "Deliveries with the id of an event that has another body.", "source")

	backlogEvents    = gauge("webhook.backlog.events", "{event}", "Events that are pending, unhandled or parked.", "source", "state")
	backlogOldest    = gauge("webhook.backlog.oldest", "s", "Since the oldest of them arrived; 0 if there is none.", "source", "state")
	blocked          = gauge("webhook.blocked.entities", "{entity}", "Entities whose events wait for an earlier one.", "source")
	backlogUp        = gauge("webhook.backlog.up", "", "1 if the backlog could be read, else 0.", "source")
	queuePenalized   = gauge("webhook.queue.penalized", "{delivery}", "Failed deliveries that the provider counts against its queue.", "source", "queue", "name")
	queueInterrupted = gauge("webhook.queue.interrupted", "", "1 if the provider has stopped its queue, else 0.", "source", "queue", "name")
	queueDeletion    = gauge("webhook.queue.deletion", "s", "Until the provider deletes the first of the events that wait.", "source", "queue", "name")
	queueUp          = gauge("webhook.queue.up", "", "1 if the queues could be read, else 0.", "source")
	counted          = gauge("webhook.check.found", "{item}", "What a check of package health counts: charges that match nothing of the application's, for example.", "source", "check")
	healthy          = gauge("webhook.healthy", "", "1 if a check of package health passes, else 0.", "source", "check")
)

func counter(name, unit, help string, labels ...string) *Metric {
	return add(Metric{Name: name, Kind: Counter, Unit: unit, Help: help, Labels: labels})
}

func histogram(name string, bounds []float64, help string, labels ...string) *Metric {
	return add(Metric{Name: name, Kind: Histogram, Unit: "s", Help: help, Labels: labels, Bounds: bounds})
}

func gauge(name, unit, help string, labels ...string) *Metric {
	return add(Metric{Name: name, Kind: Gauge, Unit: unit, Help: help, Labels: labels})
}

func add(m Metric) *Metric {
	metrics = append(metrics, &m)
	return &m
}

// Outcomes that alerts are about.
var (
	badDeliveries = []idem.Outcome{idem.Retrying, idem.Unknown, idem.Published}
	badAttempts   = []idem.Outcome{idem.Retrying, idem.Unknown, idem.Parked}
)

// Begin records a 0 of each counter that alerts are about, for each type that has a handler: of a
// counter that begins at 5, Prometheus sees no increase.
func Begin(in *idem.Endpoint, record Record) {
	source, types := in.SourceName(), in.Types()
	record(conflicts, 0, source)
	record(refused, 0, source, string(idem.ReasonNotConfigured))
	for _, label := range append(types, inside.OtherTypes) {
		for _, o := range badDeliveries {
			record(deliveries, 0, source, label, string(o))
		}
		for _, o := range badAttempts {
			record(attempts, 0, source, label, string(o))
		}
	}
}

// Lag returns the time from the provider's own time of the event until now. ok is false unless the outcome is
// Done and the provider gave a time. The provider and this process have two clocks: a negative lag is returned
// as 0.
func Lag(o idem.Observation) (lag time.Duration, ok bool) {
	if o.Outcome != idem.Done || o.Event.OccurredAt.IsZero() {
		return 0, false
	}
	return max(time.Since(o.Event.OccurredAt), 0), true
}

// Observe records the counters and histograms of an observation. It records nothing of one
// without an outcome: another worker or an earlier event had to go first.
func Observe(o idem.Observation, record Record) {
	if o.Outcome == "" {
		return
	}
	ends, took := deliveries, deliveryTime
	if o.Stage == idem.StageAttempt {
		ends, took = attempts, attemptTime
	}
	record(ends, 1, o.Source, o.Label, string(o.Outcome))
	record(took, o.Duration.Seconds(), o.Source, o.Label)
	if late, ok := Lag(o); ok {
		record(lag, late.Seconds(), o.Source, o.Label)
	}
	if o.Relayed > 0 {
		record(relayed, o.Relayed.Seconds(), o.Source)
	}
	if refusal, ok := errors.AsType[*idem.Refusal](o.Err); ok && o.Outcome == idem.Refused {
		record(refused, 1, o.Source, string(refusal.Reason))
	}
	if o.Conflict {
		record(conflicts, 1, o.Source)
	}
}
