package idemotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/gauge"
)

// gauges are the instruments that are read when a MeterProvider collects.
type gauges struct {
	backlogs gauge.Sources[idem.Stats]
	queues   gauge.Sources[[]gauge.Queue]
	checks   gauge.Sources[[]idem.Check]

	events, blocked, backlogUp      metric.Int64ObservableGauge
	penalized, interrupted, queueUp metric.Int64ObservableGauge
	healthy                         metric.Int64ObservableGauge
	oldest, deletion                metric.Float64ObservableGauge
}

func newGauges(in *instruments) *gauges {
	g := &gauges{
		events:      in.count("webhook.backlog.events", "{event}", "Events that are pending, retrying, unhandled or parked."),
		oldest:      in.seconds("webhook.backlog.oldest", "Since the oldest of them arrived; 0 if there is none."),
		blocked:     in.count("webhook.blocked.entities", "{entity}", "Entities whose events wait for an earlier one."),
		backlogUp:   in.count("webhook.backlog.up", "", "1 if the backlog could be read, else 0."),
		penalized:   in.count("webhook.queue.penalized", "{delivery}", "Failed deliveries that the provider counts against its queue."),
		interrupted: in.count("webhook.queue.interrupted", "", "1 if the provider has stopped its queue, else 0."),
		deletion:    in.seconds("webhook.queue.deletion", "Until the provider deletes the first of the events that wait."),
		healthy:     in.count("webhook.healthy", "", "1 if a check of package health passes, else 0."),
		queueUp:     in.count("webhook.queue.up", "", "1 if the queues could be read, else 0."),
	}
	in.callback(g.observeBacklogs, g.events, g.oldest, g.blocked, g.backlogUp)
	in.callback(g.observeQueues, g.penalized, g.interrupted, g.deletion, g.queueUp)
	in.callback(g.observeHealth, g.healthy)
	return g
}

func (g *gauges) observeBacklogs(ctx context.Context, o metric.Observer) (err error) {
	for _, s := range g.backlogs.Samples(ctx) {
		source := attribute.String("source", s.Source)
		o.ObserveInt64(g.backlogUp, bit(s.Err == nil), metric.WithAttributes(source))
		if s.Err != nil {
			err = errors.Join(err, fmt.Errorf("idemotel: reading the backlog of %s: %w", s.Source, s.Err))
			continue
		}
		for state, b := range map[idem.State]idem.Backlog{
			idem.StatePending: s.Value.Pending, idem.StateRetrying: s.Value.Retrying,
			idem.StateUnhandled: s.Value.Unhandled, idem.StateParked: s.Value.Parked,
		} {
			with := metric.WithAttributes(source, attribute.String("state", string(state)))
			o.ObserveInt64(g.events, b.Events, with)
			o.ObserveFloat64(g.oldest, b.Oldest.Seconds(), with)
		}
		o.ObserveInt64(g.blocked, s.Value.BlockedKeys, metric.WithAttributes(source))
	}
	return err
}

func (g *gauges) observeQueues(ctx context.Context, o metric.Observer) (err error) {
	for _, s := range g.queues.Samples(ctx) {
		source := attribute.String("source", s.Source)
		o.ObserveInt64(g.queueUp, bit(s.Err == nil), metric.WithAttributes(source))
		if s.Err != nil {
			err = errors.Join(err, fmt.Errorf("idemotel: reading the queues of %s: %w", s.Source, s.Err))
			continue
		}
		for _, q := range s.Value {
			with := metric.WithAttributes(source, attribute.String("queue", valid(q.ID)), attribute.String("name", valid(q.Name)))
			o.ObserveInt64(g.penalized, int64(q.Penalized), with)
			o.ObserveInt64(g.interrupted, bit(q.Interrupted), with)
			if q.DeletesIn > 0 {
				o.ObserveFloat64(g.deletion, q.DeletesIn.Seconds(), with)
			}
		}
	}
	return err
}

// observeHealth tells of each check whether all of its name pass: two receivers may be of one source.
func (g *gauges) observeHealth(ctx context.Context, o metric.Observer) error {
	type name struct{ source, check string }
	for _, s := range g.checks.Samples(ctx) { // of no value while it is not known
		all := map[name]bool{}
		for _, c := range s.Value {
			n := name{valid(c.Source), valid(c.Name)}
			before, ok := all[n]
			all[n] = c.Healthy && (before || !ok)
		}
		for n, healthy := range all {
			o.ObserveInt64(g.healthy, bit(healthy), metric.WithAttributes(attribute.String("source", n.source), attribute.String("check", n.check)))
		}
	}
	return nil
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
