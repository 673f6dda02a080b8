package gauge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
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

	backlogEvents    = gauge("webhook.backlog.events", "{event}", "Events that are pending, retrying, unhandled or parked.", "source", "state")
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

// Observe records the counters and histograms of an observation. One without an outcome is
// nothing: another worker or an earlier event had to go first.
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

// States reads the gauges. The zero value has none.
type States struct {
	backlogs Sources[idem.Stats]
	queues   Sources[[]Queue]
	checks   Sources[[]check.Result]
}

// AddBacklog has the stored events of a source read.
func (s *States) AddBacklog(source string, read func(context.Context) (idem.Stats, error)) {
	s.backlogs.Add(source, read)
}

// AddQueues has the provider's queues of a source read. read is the method Queues of a [Queues].
func (s *States) AddQueues(source string, read func(context.Context) ([]Queue, error)) {
	s.queues.Add(source, read)
}

// SetChecks has the checks of a health read. There is one health: further calls have no effect.
func (s *States) SetChecks(read func() []check.Result) {
	s.checks.Add("", func(context.Context) ([]check.Result, error) { return read(), nil })
}

// Read records all gauges, as they were read at most a minute ago. The gauges of a source that
// could not be read are absent, and its webhook.backlog.up or webhook.queue.up is 0; the error
// has the reasons.
func (s *States) Read(ctx context.Context, record Record) error {
	var errs []error
	for _, sample := range s.backlogs.Samples(ctx) {
		record(backlogUp, bit(sample.Err == nil), sample.Source)
		if sample.Err != nil {
			errs = append(errs, fmt.Errorf("reading the backlog of %s: %w", sample.Source, sample.Err))
			continue
		}
		for state, b := range map[idem.State]idem.Backlog{
			idem.StatePending: sample.Value.Pending, idem.StateRetrying: sample.Value.Retrying,
			idem.StateUnhandled: sample.Value.Unhandled, idem.StateParked: sample.Value.Parked,
		} {
			record(backlogEvents, float64(b.Events), sample.Source, string(state))
			record(backlogOldest, b.Oldest.Seconds(), sample.Source, string(state))
		}
		record(blocked, float64(sample.Value.BlockedKeys), sample.Source)
	}
	for _, sample := range s.queues.Samples(ctx) {
		record(queueUp, bit(sample.Err == nil), sample.Source)
		if sample.Err != nil {
			errs = append(errs, fmt.Errorf("reading the queues of %s: %w", sample.Source, sample.Err))
			continue
		}
		for _, q := range distinct(sample.Value) {
			record(queuePenalized, float64(q.Penalized), sample.Source, q.ID, q.Name)
			record(queueInterrupted, bit(q.Interrupted), sample.Source, q.ID, q.Name)
			if q.DeletesIn > 0 {
				record(queueDeletion, q.DeletesIn.Seconds(), sample.Source, q.ID, q.Name)
			}
		}
	}
	for _, sample := range s.checks.Samples(ctx) {
		for name, all := range worst(sample.Value) { // none while the health is not known
			record(healthy, bit(all.Healthy), name.source, name.check)
			if all.Count != nil {
				record(counted, float64(*all.Count), name.source, name.check)
			}
		}
	}
	return errors.Join(errs...)
}

// distinct returns queues without those for which a monitor refuses all metrics: a queue that the
// provider lists on two pages, because another was added in between, and bytes that are no text.
func distinct(queues []Queue) (some []Queue) {
	seen := make(map[string]bool)
	for _, q := range queues {
		q.ID, q.Name = text(q.ID), text(q.Name)
		if !seen[q.ID] {
			seen[q.ID] = true
			some = append(some, q)
		}
	}
	return some
}

type checkName struct{ source, check string }

// worst returns one result for each name, which passes if all checks of that name pass, and has their sum: two receivers
// may be of one source.
func worst(checks []check.Result) map[checkName]check.Result {
	all := make(map[checkName]check.Result)
	for _, c := range checks {
		name := checkName{text(c.Source), text(c.Name)}
		if before, ok := all[name]; ok {
			c.Healthy = c.Healthy && before.Healthy
			if c.Count != nil && before.Count != nil {
				c.Count = new(*c.Count + *before.Count)
			}
		}
		all[name] = c
	}
	return all
}

func text(s string) string { return strings.ToValidUTF8(s, "?") }

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
