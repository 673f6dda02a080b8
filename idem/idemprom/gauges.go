package idemprom

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/gauge"
)

// gauges are read when Prometheus scrapes.
type gauges struct {
	backlogs gauge.Sources[idem.Stats]
	queues   gauge.Sources[[]gauge.Queue]
	checks   gauge.Sources[[]idem.Check]

	events, oldest, blocked, backlogUp        *prometheus.Desc
	penalized, interrupted, deletion, queueUp *prometheus.Desc
	healthy                                   *prometheus.Desc
}

func newGauges() *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		events:      desc("webhook_backlog_events", "Events that are pending, retrying, unhandled or parked.", "source", "state"),
		oldest:      desc("webhook_backlog_oldest_seconds", "Since the oldest of them arrived; 0 if there is none.", "source", "state"),
		blocked:     desc("webhook_blocked_entities", "Entities whose events wait for an earlier one.", "source"),
		backlogUp:   desc("webhook_backlog_up", "1 if the backlog could be read, else 0.", "source"),
		penalized:   desc("webhook_queue_penalized", "Failed deliveries that the provider counts against its queue.", "source", "queue", "name"),
		interrupted: desc("webhook_queue_interrupted", "1 if the provider has stopped its queue, else 0.", "source", "queue", "name"),
		deletion:    desc("webhook_queue_deletion_seconds", "Until the provider deletes the first of the events that wait.", "source", "queue", "name"),
		healthy:     desc("webhook_healthy", "1 if a check of package health passes, else 0.", "source", "check"),
		queueUp:     desc("webhook_queue_up", "1 if the queues could be read, else 0.", "source"),
	}
}

func (g *gauges) describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.events, g.oldest, g.blocked, g.backlogUp, g.penalized, g.interrupted, g.deletion, g.queueUp, g.healthy} {
		descs <- d
	}
}

// scrapeTime is the time that a scrape waits for all its reads together.
const scrapeTime = 2 * time.Second

func (g *gauges) collect(metrics chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	for _, s := range g.backlogs.Samples(ctx) {
		show(g.backlogUp, bit(s.Err == nil), s.Source)
		if s.Err != nil {
			continue
		}
		for state, b := range map[idem.State]idem.Backlog{
			idem.StatePending: s.Value.Pending, idem.StateRetrying: s.Value.Retrying,
			idem.StateUnhandled: s.Value.Unhandled, idem.StateParked: s.Value.Parked,
		} {
			show(g.events, float64(b.Events), s.Source, string(state))
			show(g.oldest, b.Oldest.Seconds(), s.Source, string(state))
		}
		show(g.blocked, float64(s.Value.BlockedKeys), s.Source)
	}
	for _, s := range g.queues.Samples(ctx) {
		show(g.queueUp, bit(s.Err == nil), s.Source)
		for _, q := range distinct(s.Value) { // none with an error
			show(g.penalized, float64(q.Penalized), s.Source, q.ID, q.Name)
			show(g.interrupted, bit(q.Interrupted), s.Source, q.ID, q.Name)
			if q.DeletesIn > 0 {
				show(g.deletion, q.DeletesIn.Seconds(), s.Source, q.ID, q.Name)
			}
		}
	}
	for _, s := range g.checks.Samples(ctx) {
		for name, healthy := range worst(s.Value) { // none while it is not known
			show(g.healthy, bit(healthy), name.source, name.check)
		}
	}
}

type checkName struct{ source, check string }

// worst is whether all checks of a name pass: two receivers may be of one source, and
// parts of the application's own say anything.
func worst(checks []idem.Check) map[checkName]bool {
	all := map[checkName]bool{}
	for _, c := range checks {
		name := checkName{strings.ToValidUTF8(c.Source, "?"), strings.ToValidUTF8(c.Name, "?")}
		before, ok := all[name]
		all[name] = c.Healthy && (before || !ok)
	}
	return all
}

// distinct returns queues without those that would fail the whole scrape: a queue that a
// provider lists on two pages, because one was added meanwhile, and bytes that are
// no text.
func distinct(queues []gauge.Queue) (some []gauge.Queue) {
	seen := map[string]bool{}
	for _, q := range queues {
		q.ID, q.Name = strings.ToValidUTF8(q.ID, "?"), strings.ToValidUTF8(q.Name, "?")
		if !seen[q.ID] {
			seen[q.ID] = true
			some = append(some, q)
		}
	}
	return some
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
