package idemprom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

func TestDeliveriesAreCountedByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	fails := true
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		if fails {
			return errNoOrder
		}
		return nil
	}
	p := s.first()
	s.wantSeries("webhook_conflicts_total", map[string]float64{"source=asaas": 0})
	occurred := time.Now().Add(-time.Hour).In(time.FixedZone("Brasília", -3*3600)).Format(time.DateTime)
	received := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("dateCreated", occurred))
	s.deliver(p, token, received, http.StatusServiceUnavailable)
	fails = false
	s.deliver(p, token, received, http.StatusOK)
	s.deliver(p, token, received, http.StatusOK)
	s.deliver(p, token, append(slices.Clone(received), ' '), http.StatusOK)
	s.deliver(p, token, asaastest.Event("PAYMENT_DELETED"), http.StatusOK)
	for _, wrong := range []string{"wrong", "wrong", ""} {
		s.deliver(p, wrong, received, http.StatusUnauthorized)
	}

	s.wantSeries("webhook_deliveries_total", map[string]float64{
		"outcome=retrying,source=asaas,type=PAYMENT_RECEIVED":  1,
		"outcome=done,source=asaas,type=PAYMENT_RECEIVED":      1,
		"outcome=duplicate,source=asaas,type=PAYMENT_RECEIVED": 2,
		"outcome=unhandled,source=asaas,type=_other":           1,
		"outcome=refused,source=asaas,type=":                   3,
	})
	s.wantSeries("webhook_delivery_duration_seconds", map[string]float64{
		"source=asaas,type=PAYMENT_RECEIVED": 4, "source=asaas,type=_other": 1, "source=asaas,type=": 3,
	})
	s.wantSeries("webhook_lag_seconds", map[string]float64{"source=asaas,type=PAYMENT_RECEIVED": 1})
	if lag := s.scrape()["webhook_lag_seconds"].GetMetric()[0].GetHistogram().GetSampleSum(); lag < 3600 || lag > 3700 {
		t.Errorf("the lag is %v seconds, want an hour", lag)
	}
	s.wantSeries("webhook_refused_total", map[string]float64{"reason=wrong_token,source=asaas": 2, "reason=missing_token,source=asaas": 1})
	s.wantSeries("webhook_conflicts_total", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook_attempts_total", map[string]float64{})
}

func TestAttemptsOfWorkersAreCountedApartFromDeliveries(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	inbox := s.inbox()
	s.deliver(inbox, token, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK)
	s.drain(inbox)
	s.wantSeries("webhook_deliveries_total", map[string]float64{"outcome=pending,source=asaas,type=PAYMENT_RECEIVED": 1})
	s.wantSeries("webhook_attempts_total", map[string]float64{"outcome=done,source=asaas,type=PAYMENT_RECEIVED": 1})
	s.wantSeries("webhook_attempt_duration_seconds", map[string]float64{"source=asaas,type=PAYMENT_RECEIVED": 1})
}

func TestInventedEventTypesAreOneSeries(t *testing.T) {
	t.Parallel()
	s := newShop(t)
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
	s.wantSeries("webhook_deliveries_total", map[string]float64{"outcome=pending,source=asaas,type=_other": invented})
	s.wantSeries("webhook_delivery_duration_seconds", map[string]float64{"source=asaas,type=_other": invented})
	s.wantSeries("webhook_lag_seconds", map[string]float64{})
}

func TestGaugesTellWhatWaits(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return idem.NoRetry(errNoOrder) }
	inbox := s.inbox()
	s.first() // of the same source: it is read once
	s.watch(
		gauge.Queue{ID: "1", Name: "shop", Penalized: 3, Interrupted: true, DeletesIn: 36 * time.Hour},
		gauge.Queue{ID: "2", Name: "shop\xff"},
		gauge.Queue{ID: "1", Name: "shop"}, // on the next page, again
	)
	for range 3 {
		s.deliver(inbox, token, asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_1")), http.StatusOK)
	}
	s.drain(inbox)
	if _, err := s.pool.Exec(s.Context(), `update idem_events set received_at = now() - interval '1 hour' where state = 'parked'`); err != nil {
		t.Fatal(err)
	}

	s.wantSeries("webhook_backlog_events", map[string]float64{
		"source=asaas,state=pending":   2,
		"source=asaas,state=unhandled": 0, "source=asaas,state=parked": 1,
	})
	oldest := series(s.scrape()["webhook_backlog_oldest_seconds"])
	if age := oldest["source=asaas,state=parked"]; age < 3600 || age > 3700 {
		t.Errorf("the oldest parked event is %v seconds old, want an hour", age)
	}
	s.wantSeries("webhook_blocked_entities", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook_backlog_up", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook_queue_penalized", map[string]float64{"name=shop,queue=1,source=asaas": 3, "name=shop?,queue=2,source=asaas": 0})
	s.wantSeries("webhook_queue_interrupted", map[string]float64{"name=shop,queue=1,source=asaas": 1, "name=shop?,queue=2,source=asaas": 0})
	s.wantSeries("webhook_queue_deletion_seconds", map[string]float64{"name=shop,queue=1,source=asaas": 129600})
	s.wantSeries("webhook_queue_up", map[string]float64{"source=asaas": 1})
}

// A scrape must answer when the database does not: the counters say why.
func TestGaugesThatCannotBeReadAreAbsentAndSaySo(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.collector.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) { return nil, errors.New("no API key") })
	s.first()
	if _, err := s.pool.Exec(s.Context(), `alter table idem_payloads rename to lost`); err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]map[string]float64{
		"webhook_backlog_up":        {"source=asaas": 0},
		"webhook_backlog_events":    {},
		"webhook_blocked_entities":  {},
		"webhook_queue_up":          {"source=asaas": 0},
		"webhook_queue_interrupted": {},
		"webhook_conflicts_total":   {"source=asaas": 0},
	} {
		s.wantSeries(metric, want)
	}
}

func TestObserveOfTheApplicationIsCalledToo(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := idem.NewInbox(s.pool, s.dispatcher())
	p.WorkFirst = true
	observed := 0
	p.Observe = func(context.Context, idem.Observation) { observed++ }
	s.collector.Instrument(p)
	s.deliver(p, token, asaastest.Event("PAYMENT_RECEIVED"), http.StatusOK)
	if observed != 1 {
		t.Errorf("the application observed %d deliveries, want 1", observed)
	}
	s.wantSeries("webhook_deliveries_total", map[string]float64{"outcome=done,source=asaas,type=PAYMENT_RECEIVED": 1})
}

// everything makes each metric have a series.
func (s *shop) everything() {
	s.Helper()
	s.watch(gauge.Queue{ID: "1", Name: "shop", Interrupted: true, Penalized: 3, DeletesIn: time.Hour})
	inbox := s.inbox()
	body := asaastest.Event("PAYMENT_RECEIVED")
	s.deliver(inbox, token, body, http.StatusOK)
	s.deliver(inbox, token, append(slices.Clone(body), ' '), http.StatusOK)
	s.deliver(inbox, "wrong", body, http.StatusUnauthorized)
	s.drain(inbox)
	h := health.New(inbox)
	h.Logger = nil
	s.collector.WatchHealth(h.Report)
	s.collector.InstrumentEndpoint(&inbox.Endpoint)
	inbox.Observe(s.Context(), idem.Observation{Source: "asaas", Stage: idem.StageDelivery, Outcome: idem.Pending, Relayed: time.Second})
}

// table is the table of metrics in a doc.go: names and attributes.
func table(t *testing.T) map[string]string {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	row := regexp.MustCompile(`(?m)^//\t(webhook_\S+)\s+(counter|histogram|gauge)\s+((?:\w+, )*\w+)\s`)
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		labels := strings.Split(m[3], ", ")
		slices.Sort(labels)
		rows[m[1]] = m[2] + " " + strings.Join(labels, ",")
	}
	return rows
}

func TestTableOfMetricsIsComplete(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.everything()
	got := map[string]string{}
	for name, family := range s.scrape() {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		got[name] = strings.ToLower(family.GetType().String()) + " " + strings.Join(labels, ",")
	}
	if diff := cmp.Diff(table(t), got); diff != "" {
		t.Error("the metrics in doc.go, and those that are scraped (-doc +scraped):\n" + diff)
	}
}

// The dashboard and the alerts are for both, so the names of package idemotel are
// these, as exporters to Prometheus spell them.
func TestNamesAreThoseOfOpenTelemetryInPrometheus(t *testing.T) {
	t.Parallel()
	translated := map[string]string{}
	for _, m := range gauge.Metrics() {
		name := strings.ReplaceAll(m.Name, ".", "_")
		switch {
		case m.Kind == gauge.Counter:
			name += "_total"
		case m.Unit == "s":
			name += "_seconds"
		}
		translated[name] = string(m.Kind) + " " + strings.Join(slices.Sorted(slices.Values(m.Labels)), ",")
	}
	if diff := cmp.Diff(table(t), translated); diff != "" {
		t.Error("the metrics here and in idemotel (-here +there):\n" + diff)
	}
}

func TestNamesAndHelpAreAsPrometheusWantsThem(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.everything()
	problems, err := testutil.CollectAndLint(s.collector)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint says %v, %v", problems, err)
	}
}

// Prometheus sees no increase of a series that begins at 5.
func TestWhatAlertsAreAboutIsCountedFromTheStart(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.first()
	for metric, outcomes := range map[string][]string{
		"webhook_deliveries_total": {"published", "retrying", "unknown"}, "webhook_attempts_total": {"parked", "retrying", "unknown"},
	} {
		want := map[string]float64{}
		for _, o := range outcomes {
			want["outcome="+o+",source=asaas,type=PAYMENT_RECEIVED"] = 0
			want["outcome="+o+",source=asaas,type=_other"] = 0
		}
		if diff := cmp.Diff(want, series(s.scrape()[metric])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", metric, diff)
		}
	}
	if diff := cmp.Diff(map[string]float64{"reason=not_configured,source=asaas": 0}, series(s.scrape()["webhook_refused_total"])); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// part is a part that says the same of itself always.
type part []check.Result

func (p part) Examine(context.Context, check.Limits) []check.Result { return p }

func TestChecksOfHealthAreAGauge(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	h := health.New(
		part{{Source: "asaas", Name: "workers", Healthy: true}, {Source: "asaas", Name: "deliveries", Healthy: false}},
		part{{Source: "asaas", Name: "workers", Healthy: false}, {Source: "asaas", Name: "deliveries", Healthy: true}},
		part{{Source: "mailer\xff", Name: "mails", Healthy: true}},
	)
	h.Logger = nil
	s.collector.WatchHealth(h.Report)
	s.wantSeries("webhook_healthy", map[string]float64{
		"check=workers,source=asaas": 0, "check=deliveries,source=asaas": 0, "check=mails,source=mailer?": 1,
	})
}

func TestHowLongEventsAreWithABrokerIsMeasured(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	inbox := s.inbox()
	const secret = "a secret of relay and consumer, 32 characters"
	received := asaastest.Event("PAYMENT_RECEIVED")
	var published []broker.Message
	toBroker := relay.New(s.dispatcher(), publisher(func(m broker.Message) { published = append(published, m) }), secret)
	toBroker.Logger = nil
	s.collector.InstrumentEndpoint(&toBroker.Endpoint)
	s.deliver(toBroker, token, received, http.StatusOK)
	for _, m := range published {
		if err := relay.To(inbox, secret)(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	s.deliver(inbox, token, received, http.StatusOK) // without a broker
	s.wantSeries("webhook_relay_lag_seconds", map[string]float64{"source=asaas": 1})
	s.wantSeries("webhook_deliveries_total", map[string]float64{
		"outcome=published,source=asaas,type=PAYMENT_RECEIVED": 1,
		"outcome=pending,source=asaas,type=PAYMENT_RECEIVED":   1,
		"outcome=duplicate,source=asaas,type=PAYMENT_RECEIVED": 1,
	})
}

// publisher is a broker that takes every message.
type publisher func(broker.Message)

func (p publisher) Publish(_ context.Context, m broker.Message) error {
	p(m)
	return nil
}
