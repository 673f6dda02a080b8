package idemprom_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/telemetry/idemprom"
)

const token = "a token of the shop, 32 characters"

var errNoOrder = errors.New("no such order")

// shop is an application with metrics at a URL.
type shop struct {
	*testing.T
	pool      *pgxpool.Pool
	collector *idemprom.Collector
	url       string                            // of the metrics
	work      idem.Handler[*asaas.PaymentEvent] // of PAYMENT_RECEIVED
}

func newShop(t *testing.T) *shop {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s := &shop{T: t, pool: pool, collector: idemprom.NewCollector()}
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.collector)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *shop) dispatcher() *asaas.Dispatcher {
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error { return s.work(ctx, tx, e) })
	return events
}

func (s *shop) first() *idem.Inbox {
	p := idem.NewInbox(s.pool, s.dispatcher())
	p.WorkFirst = true
	p.Logger = nil
	s.collector.Instrument(p)
	return p
}

func (s *shop) inbox() *idem.Inbox {
	i := idem.NewInbox(s.pool, s.dispatcher())
	i.Logger = nil
	s.collector.Instrument(i)
	return i
}

func (s *shop) watch(queues ...gauge.Queue) {
	s.collector.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) { return queues, nil })
}

// deliver delivers a body, and checks the answer's status.
func (s *shop) deliver(h http.Handler, token string, body []byte, want int) {
	s.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, asaastest.Request("/webhooks/asaas", token, body))
	if w.Code != want {
		s.Fatalf("the delivery was answered %d %s, want %d", w.Code, w.Body, want)
	}
}

func (s *shop) drain(i *idem.Inbox) {
	s.Helper()
	if err := i.Drain(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// scrape reads the metrics as Prometheus does.
func (s *shop) scrape() map[string]*dto.MetricFamily {
	s.Helper()
	answer, err := http.Get(s.url)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("the scrape was answered %s, %v", answer.Status, err)
	}
	return families
}

// wantSeries checks the labels and values of a metric; that of a histogram is how
// many values it has. Counters by outcome that are 0 are for
// TestWhatAlertsAreAboutIsCountedFromTheStart.
func (s *shop) wantSeries(name string, want map[string]float64) {
	s.Helper()
	got := series(s.scrape()[name])
	maps.DeleteFunc(got, func(labels string, n float64) bool {
		return n == 0 && (strings.Contains(labels, "outcome=") || strings.Contains(labels, "reason="))
	})
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func series(family *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range family.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		slices.Sort(labels)
		all[strings.Join(labels, ",")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return all
}
