package idemotel_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metricsserver "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceserver "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/telemetry/idemotel"
)

// receiver is an OTLP server that keeps each request.
type receiver struct {
	t *testing.T

	mu      sync.Mutex
	spans   map[string]*tracepb.Span
	metrics map[string]*metricspb.Metric
}

func newReceiver(t *testing.T) (r *receiver, url string) {
	t.Helper()
	r = &receiver{t: t, spans: map[string]*tracepb.Span{}, metrics: map[string]*metricspb.Metric{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server.URL
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
	switch req.URL.Path {
	case "/v1/traces":
		var sent traceserver.ExportTraceServiceRequest
		r.decode(req, &sent)
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					r.spans[span.Name] = span
				}
			}
		}
	case "/v1/metrics":
		var sent metricsserver.ExportMetricsServiceRequest
		r.decode(req, &sent)
		for _, resource := range sent.ResourceMetrics {
			for _, scope := range resource.ScopeMetrics {
				for _, metric := range scope.Metrics {
					r.metrics[metric.Name] = metric
				}
			}
		}
	default:
		r.t.Errorf("the exporter asked for %s", req.URL.Path)
	}
}

func (r *receiver) decode(req *http.Request, m proto.Message) {
	var body io.Reader = req.Body
	if strings.EqualFold(req.Header.Get("Content-Encoding"), "gzip") {
		unzipped, err := gzip.NewReader(req.Body)
		if err != nil {
			r.t.Error(err)
			return
		}
		body = unzipped
	}
	sent, err := io.ReadAll(body)
	if err == nil {
		err = proto.Unmarshal(sent, m)
	}
	if err != nil {
		r.t.Errorf("what the exporter sent to %s cannot be read: %v", req.URL.Path, err)
	}
}

// The whole way, with nothing in memory: a delivery over HTTP, a worker, the SDK's
// batches, OTLP over HTTP.
func TestTracesAndMetricsArriveAtAnOTLPServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	received, url := newReceiver(t)
	traces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	measures, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(url+"/v1/metrics"),
		otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
	if err != nil {
		t.Fatal(err)
	}
	tracing := sdktrace.NewTracerProvider(sdktrace.WithBatcher(traces))
	metering := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(measures)))
	telemetry, err := idemotel.New(idemotel.Settings{TracerProvider: tracing, MeterProvider: metering})
	if err != nil {
		t.Fatal(err)
	}

	pool := idemtest.Pool(t)
	if err := idem.Migrate(ctx, pool); err != nil {
		t.Fatal(err)
	}
	s := &shop{T: t}
	events := asaas.NewDispatcher(token)
	inbox := idem.NewInbox(pool, events)
	telemetry.Instrument(inbox)
	server := httptest.NewServer(inbox)
	t.Cleanup(server.Close)
	r := asaastest.Request(server.URL, token, asaastest.Event("PAYMENT_RECEIVED"))
	r.RequestURI = ""
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the delivery was answered %s, %v", answer.Status, err)
	}
	if err := inbox.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tracing.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := metering.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	s.wantReceived(received)
}

func (s *shop) wantReceived(r *receiver) {
	s.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	stored, worked := r.spans["webhook delivery _other"], r.spans["webhook attempt _other"]
	if len(r.spans) != 2 || stored == nil || worked == nil {
		s.Fatalf("the spans are %v, want a delivery and an attempt", r.spans)
	}
	if stored.ParentSpanId != nil || worked.ParentSpanId != nil || string(stored.TraceId) == string(worked.TraceId) {
		s.Error("the delivery and the attempt do not begin a trace each")
	}
	if len(worked.Links) != 1 || string(worked.Links[0].SpanId) != string(stored.SpanId) || string(worked.Links[0].TraceId) != string(stored.TraceId) {
		s.Errorf("the attempt's links are %v, want the delivery", worked.Links)
	}
	if took := time.Duration(stored.EndTimeUnixNano - stored.StartTimeUnixNano); took <= 0 || took > time.Minute {
		s.Errorf("the delivery is said to have taken %s", took)
	}
	for _, name := range []string{"webhook.deliveries", "webhook.attempts", "webhook.delivery.duration", "webhook.backlog.events", "webhook.backlog.up"} {
		if r.metrics[name] == nil {
			s.Errorf("the metric %s did not arrive", name)
		}
	}
	attempts := int64(0)
	for _, point := range r.metrics["webhook.attempts"].GetSum().GetDataPoints() { // those of other outcomes are 0
		attempts += point.GetAsInt()
	}
	if attempts != 1 {
		s.Errorf("webhook.attempts are %d, want 1", attempts)
	}
}

// A batch with bytes that are no text is refused whole, with the spans of all others.
func TestBytesThatAreNoTextCostNoSpan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	received, url := newReceiver(t)
	traces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	tracing := sdktrace.NewTracerProvider(sdktrace.WithBatcher(traces))
	s := newShop(t, idemotel.Settings{})
	telemetry, err := idemotel.New(idemotel.Settings{TracerProvider: tracing})
	if err != nil {
		t.Fatal(err)
	}
	s.work = func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("no such caf\xe9") }
	p := idem.NewInbox(s.pool, s.dispatcher())
	p.WorkFirst = true
	p.Logger = nil
	telemetry.Instrument(p)
	e := asaas.Identify(asaastest.Event("PAYMENT_RECEIVED"))
	e.Scope = "shop \xff"
	if _, err := p.Accept(ctx, e); err == nil {
		t.Fatal("the handler has not failed")
	}
	if err := tracing.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	received.mu.Lock()
	defer received.mu.Unlock()
	span := received.spans[delivery]
	if says := span.GetStatus().GetMessage(); !strings.HasSuffix(says, "no such caf\uFFFD") {
		t.Errorf("the span says %q", says)
	}
	for _, a := range span.GetAttributes() {
		if a.Key == "webhook.scope" && a.Value.GetStringValue() != "shop \uFFFD" {
			t.Errorf("its scope is %q", a.Value.GetStringValue())
		}
	}
}
