package idemprom_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/telemetry/idemprom"
)

// A program instruments its receivers before they receive, registers the
// collector, and serves the metrics.
func ExampleCollector_Instrument() {
	ctx := context.Background()
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	collector := idemprom.NewCollector()
	collector.Instrument(inbox)
	registry := prometheus.NewRegistry() // or prometheus.MustRegister(collector)
	registry.MustRegister(collector)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // http.Handle("GET /metrics", metrics)

	body := asaastest.Event("PAYMENT_RECEIVED")
	inbox.ServeHTTP(httptest.NewRecorder(), asaastest.Request("/webhooks/asaas", token, body))
	inbox.ServeHTTP(httptest.NewRecorder(), asaastest.Request("/webhooks/asaas", token, body))

	scraped := httptest.NewRecorder()
	metrics.ServeHTTP(scraped, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scraped.Body.String()) {
		if strings.HasPrefix(line, "webhook_deliveries_total") && !strings.HasSuffix(line, " 0\n") || strings.HasPrefix(line, "webhook_backlog_events") {
			fmt.Print(line)
		}
	}
	// Output:
	// webhook_backlog_events{source="asaas",state="parked"} 0
	// webhook_backlog_events{source="asaas",state="pending"} 0
	// webhook_backlog_events{source="asaas",state="unhandled"} 0
	// webhook_deliveries_total{outcome="done",source="asaas",type="PAYMENT_RECEIVED"} 1
	// webhook_deliveries_total{outcome="duplicate",source="asaas",type="PAYMENT_RECEIVED"} 1
}

// The provider's queues are read with the provider's API, here with a type that a program
// may have already. webhook.NewQueues returns one with a method Queues that fits.
func ExampleCollector_WatchQueues() {
	collector := idemprom.NewCollector()
	collector.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{{ID: "a webhook's id", Name: "shop", Penalized: 3}}, nil
	})
}
