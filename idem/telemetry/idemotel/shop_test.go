package idemotel_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/telemetry/idemotel"
)

const token = "a token of the shop, 32 characters"

// shop is an application with telemetry that stays in memory.
type shop struct {
	*testing.T
	pool      *pgxpool.Pool
	telemetry *idemotel.Telemetry
	spans     *tracetest.InMemoryExporter
	metrics   *sdkmetric.ManualReader
	work      idem.Handler[*asaas.PaymentEvent] // of PAYMENT_RECEIVED
}

func newShop(t *testing.T, s idemotel.Settings) *shop {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	app := &shop{T: t, pool: pool, spans: tracetest.NewInMemoryExporter(), metrics: sdkmetric.NewManualReader()}
	s.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(app.spans))
	s.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(app.metrics))
	telemetry, err := idemotel.New(s)
	if err != nil {
		t.Fatal(err)
	}
	app.telemetry = telemetry
	app.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	return app
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
	s.telemetry.Instrument(p)
	return p
}

func (s *shop) inbox() *idem.Inbox {
	i := idem.NewInbox(s.pool, s.dispatcher())
	i.Logger = nil
	s.telemetry.Instrument(i)
	return i
}

// deliver delivers a body, and checks the answer's status.
func (s *shop) deliver(h http.Handler, body []byte, want int) {
	s.Helper()
	s.send(h, asaastest.Request("/webhooks/asaas", token, body), want)
}

func (s *shop) send(h http.Handler, r *http.Request, want int) {
	s.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != want {
		s.Fatalf("the delivery was answered %d %s, want %d", w.Code, w.Body, want)
	}
}

// span returns the only span of a name.
func (s *shop) span(name string) (found tracetest.SpanStub) {
	s.Helper()
	n := 0
	for _, span := range s.spans.GetSpans() {
		if span.Name == name {
			found = span
			n++
		}
	}
	if n != 1 {
		s.Fatalf("%d spans are called %q, want 1", n, name)
	}
	return found
}

// collect returns the metrics by name.
func (s *shop) collect() map[string]metricdata.Metrics {
	s.Helper()
	var all metricdata.ResourceMetrics
	if err := s.metrics.Collect(s.Context(), &all); err != nil {
		s.Log("collecting: ", err)
	}
	byName := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// series are the attributes and values of a metric, as text; the values of a
// histogram are their number.
func series(m metricdata.Metrics) map[string]float64 {
	all := map[string]float64{}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all[text(p.Attributes)] = float64(p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			all[text(p.Attributes)] = p.Value
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all[text(p.Attributes)] = float64(p.Count)
		}
	}
	return all
}
