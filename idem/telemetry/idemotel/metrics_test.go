package idemotel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/telemetry/idemotel"
)

// wantSeries checks the attributes and values of a metric. Counters by outcome that are 0
// are for TestWhatAlertsAreAboutIsCountedFromTheStart.
func (s *shop) wantSeries(metric string, want map[string]float64) {
	s.Helper()
	got := series(s.collect()[metric])
	maps.DeleteFunc(got, func(labels string, n float64) bool {
		return n == 0 && (strings.Contains(labels, "outcome=") || strings.Contains(labels, "reason="))
	})
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", metric, diff)
	}
}

func TestDeliveriesAreCountedByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	fails := true
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		if fails {
			return errors.New("no such order")
		}
		return nil
	}
	p := s.first()
	occurred := time.Now().Add(-time.Hour).In(time.FixedZone("Brasília", -3*3600)).Format(time.DateTime)
	received := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("dateCreated", occurred))
	s.deliver(p, received, http.StatusServiceUnavailable)
	fails = false
	s.deliver(p, received, http.StatusOK)
	s.deliver(p, received, http.StatusOK)
	s.deliver(p, append(slices.Clone(received), ' '), http.StatusOK)
	s.deliver(p, asaastest.Event("PAYMENT_DELETED"), http.StatusOK)
	for _, wrong := range []string{"wrong", "wrong", ""} {
		s.send(p, asaastest.Request("/", wrong, received), http.StatusUnauthorized)
	}

	s.wantSeries("webhook.deliveries", map[string]float64{
		"outcome=retrying,source=asaas,type=PAYMENT_RECEIVED":  1,
		"outcome=done,source=asaas,type=PAYMENT_RECEIVED":      1,
		"outcome=duplicate,source=asaas,type=PAYMENT_RECEIVED": 2,
		"outcome=unhandled,source=asaas,type=_other":           1,
		"outcome=refused,source=asaas,type=":                   3,
	})
	s.wantSeries("webhook.delivery.duration", map[string]float64{
		"source=asaas,type=PAYMENT_RECEIVED": 4, "source=asaas,type=_other": 1, "source=asaas,type=": 3,
	})
	s.wantSeries("webhook.lag", map[string]float64{"source=asaas,type=PAYMENT_RECEIVED": 1})
	s.wantSeries("webhook.refused", map[string]float64{
		"reason=wrong_token,source=asaas": 2, "reason=missing_token,source=asaas": 1,
	})
	s.wantSeries("webhook.conflicts", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook.attempts", map[string]float64{})
}

func TestAttemptsOfWorkersAreCountedApartFromDeliveries(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	inbox := s.inbox()
	s.deliver(inbox, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK)
	s.deliver(inbox, asaastest.Event("PAYMENT_DELETED"), http.StatusOK)
	if err := inbox.Drain(s.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantSeries("webhook.deliveries", map[string]float64{
		"outcome=pending,source=asaas,type=PAYMENT_RECEIVED": 1, "outcome=pending,source=asaas,type=_other": 1,
	})
	s.wantSeries("webhook.attempts", map[string]float64{
		"outcome=done,source=asaas,type=PAYMENT_RECEIVED": 1, "outcome=unhandled,source=asaas,type=_other": 1,
	})
	s.wantSeries("webhook.attempt.duration", map[string]float64{
		"source=asaas,type=PAYMENT_RECEIVED": 1, "source=asaas,type=_other": 1,
	})
}

func TestInventedEventTypesAreOneSeries(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	inbox := s.inbox()
	const invented, at = 10_000, 100
	failed := make(chan error, at)
	for worker := range at {
		go func() {
			var err error
			for n := range invented / at {
				body := fmt.Sprintf(`{"id":"evt_%d_%d","event":"INVENTED_%d_%d","payment":{"id":"pay_%d"}}`, worker, n, worker, n, n)
				if outcome, accepting := inbox.Accept(t.Context(), asaas.Identify([]byte(body))); outcome != idem.Pending {
					err = fmt.Errorf("an event was %s, %w", outcome, accepting)
				}
			}
			failed <- err
		}()
	}
	for range at {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	s.wantSeries("webhook.deliveries", map[string]float64{"outcome=pending,source=asaas,type=_other": invented})
	s.wantSeries("webhook.delivery.duration", map[string]float64{"source=asaas,type=_other": invented})
	names := map[string]bool{}
	for _, span := range s.spans.GetSpans() {
		names[span.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"webhook delivery _other": true}, names); diff != "" {
		t.Error("names of spans (-want +got):\n" + diff)
	}
}

func TestGaugesTellWhatWaits(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		return idem.NoRetry(errors.New("no such order"))
	}
	inbox := s.inbox()
	s.telemetry.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{
			{ID: "1", Name: "shop", Penalized: 3, Interrupted: true, DeletesIn: 36 * time.Hour},
			{ID: "2", Name: "shop"},
		}, nil
	})
	for range 3 {
		s.deliver(inbox, asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_1")), http.StatusOK)
	}
	if err := inbox.Drain(s.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(s.Context(), `update idem_events set received_at = now() - interval '1 hour' where state = 'parked'`); err != nil {
		t.Fatal(err)
	}

	s.wantSeries("webhook.backlog.events", map[string]float64{
		"source=asaas,state=pending":   2,
		"source=asaas,state=unhandled": 0, "source=asaas,state=parked": 1,
	})
	oldest := series(s.collect()["webhook.backlog.oldest"])
	if age := oldest["source=asaas,state=parked"]; age < 3600 || age > 3700 {
		t.Errorf("the oldest parked event is %v seconds old, want an hour", age)
	}
	if age, ok := oldest["source=asaas,state=unhandled"]; !ok || age != 0 {
		t.Errorf("the oldest unhandled event is %v, %t, want 0", age, ok)
	}
	s.wantSeries("webhook.blocked.entities", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook.backlog.up", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook.queue.penalized", map[string]float64{"name=shop,queue=1,source=asaas": 3, "name=shop,queue=2,source=asaas": 0})
	s.wantSeries("webhook.queue.interrupted", map[string]float64{"name=shop,queue=1,source=asaas": 1, "name=shop,queue=2,source=asaas": 0})
	s.wantSeries("webhook.queue.deletion", map[string]float64{"name=shop,queue=1,source=asaas": 129600})
	s.wantSeries("webhook.queue.up", map[string]float64{"source=asaas": 1})
}

func TestGaugesThatCannotBeReadAreAbsentAndSaySo(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.telemetry.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) { return nil, errors.New("no API key") })
	s.inbox()
	if _, err := s.pool.Exec(s.Context(), `alter table idem_payloads rename to lost`); err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]map[string]float64{
		"webhook.backlog.up":        {"source=asaas": 0},
		"webhook.backlog.events":    {},
		"webhook.backlog.oldest":    {},
		"webhook.blocked.entities":  {},
		"webhook.queue.up":          {"source=asaas": 0},
		"webhook.queue.interrupted": {},
	} {
		s.wantSeries(metric, want)
	}
}

func TestEachMetricIsMeasuredWithItsAttributes(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.telemetry.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{{ID: "1", Interrupted: true, DeletesIn: time.Hour}}, nil
	})
	inbox := s.inbox()
	body := asaastest.Event("PAYMENT_RECEIVED")
	s.deliver(inbox, body, http.StatusOK)
	s.deliver(inbox, append(slices.Clone(body), ' '), http.StatusOK)
	s.send(inbox, asaastest.Request("/", "wrong", body), http.StatusUnauthorized)
	if err := inbox.Drain(s.Context()); err != nil {
		t.Fatal(err)
	}
	h := health.New(inbox)
	h.Logger = nil
	s.telemetry.WatchHealth(h.Report)
	_, end := inbox.Tracer.Start(s.Context(), idem.Span{Stage: idem.StageDelivery})
	end(idem.Observation{Source: "asaas", Stage: idem.StageDelivery, Outcome: idem.Pending, Relayed: time.Second})
	got := map[string]string{}
	for name, metric := range s.collect() {
		for attributes := range series(metric) {
			var names []string
			for pair := range strings.SplitSeq(attributes, ",") {
				name, _, _ := strings.Cut(pair, "=")
				names = append(names, name)
			}
			got[name] = strings.Join(names, ",")
		}
	}
	want := map[string]string{}
	for _, m := range gauge.Metrics() {
		want[m.Name] = strings.Join(slices.Sorted(slices.Values(m.Labels)), ",")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("the metrics of package gauge, and those that are measured (-described +measured):\n" + diff)
	}
}

func TestNamesOfQueuesAreText(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.telemetry.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{{ID: "1\xff", Name: "loja\xff"}}, nil
	})
	queues, _ := s.collect()["webhook.queue.penalized"].Data.(metricdata.Gauge[float64])
	if len(queues.DataPoints) != 1 {
		t.Fatalf("there are %d queues", len(queues.DataPoints))
	}
	for _, a := range queues.DataPoints[0].Attributes.ToSlice() {
		if !utf8.ValidString(a.Value.AsString()) {
			t.Errorf("%s is %q", a.Key, a.Value.AsString())
		}
	}
}

// Prometheus sees no increase of a series that begins at 5.
func TestWhatAlertsAreAboutIsCountedFromTheStart(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	s.inbox()
	for metric, outcomes := range map[string][]string{
		"webhook.deliveries": {"published", "retrying", "unknown"}, "webhook.attempts": {"parked", "retrying", "unknown"},
	} {
		want := map[string]float64{}
		for _, o := range outcomes {
			want["outcome="+o+",source=asaas,type=PAYMENT_RECEIVED"] = 0
			want["outcome="+o+",source=asaas,type=_other"] = 0
		}
		if diff := cmp.Diff(want, series(s.collect()[metric])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", metric, diff)
		}
	}
}

// part is a part that says the same of itself always.
type part []check.Result

func (p part) Examine(context.Context, check.Limits) []check.Result { return p }

func TestChecksOfHealthAreAGauge(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	h := health.New(
		part{{Source: "asaas", Name: "workers", Healthy: true}, {Source: "asaas", Name: "deliveries", Healthy: false}},
		part{{Source: "asaas", Name: "workers", Healthy: false}, {Source: "asaas", Name: "deliveries", Healthy: true}},
		part{{Source: "mailer", Name: "mails", Healthy: true}},
	)
	h.Logger = nil
	s.telemetry.WatchHealth(h.Report)
	s.wantSeries("webhook.healthy", map[string]float64{
		"check=workers,source=asaas": 0, "check=deliveries,source=asaas": 0, "check=mails,source=mailer": 1,
	})
}

func TestHowLongEventsAreWithABrokerIsMeasured(t *testing.T) {
	t.Parallel()
	s := newShop(t, idemotel.Settings{})
	inbox := s.inbox()
	_, end := inbox.Tracer.Start(t.Context(), idem.Span{Stage: idem.StageDelivery})
	end(idem.Observation{Source: "asaas", Stage: idem.StageDelivery, Outcome: idem.Pending, Relayed: time.Minute})
	s.wantSeries("webhook.relay.lag", map[string]float64{"source=asaas": 1})
}
