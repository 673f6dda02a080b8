package idemotel_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/telemetry/idemotel"
)

// printer is an exporter of spans; yours is otlptracehttp, for example.
type printer struct{}

func (printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		fmt.Println(span.Name(), "linked to", len(span.Links()))
	}
	return nil
}

func (printer) Shutdown(context.Context) error { return nil }

// A program sets up OpenTelemetry's SDK, and instruments its receivers before they
// receive.
func ExampleTelemetry_Instrument() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(printer{})))

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
	telemetry, err := idemotel.New(idemotel.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	telemetry.Instrument(inbox)

	body := asaastest.Event("PAYMENT_RECEIVED")
	inbox.ServeHTTP(httptest.NewRecorder(), asaastest.Request("/webhooks/asaas", token, body))
	if err := inbox.Drain(ctx); err != nil { // inbox.Run does the same until it is stopped
		log.Fatal(err)
	}
	// Output:
	// webhook delivery PAYMENT_RECEIVED linked to 0
	// webhook attempt PAYMENT_RECEIVED linked to 1
}

// The provider's queues are read with the provider's API, here with a type that a program
// may have already. webhook.NewQueues returns one with a method Queues that fits.
func ExampleTelemetry_WatchQueues() {
	telemetry, err := idemotel.New(idemotel.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	telemetry.WatchQueues("asaas", func(context.Context) ([]gauge.Queue, error) {
		return []gauge.Queue{{ID: "a webhook's id", Name: "shop", Penalized: 3}}, nil
	})
}
