package asaas_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// newReceiver is a receiver with handlers that must not run.
func newReceiver(t *testing.T, set func(*asaas.Dispatcher)) *idem.Processor {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	events.OnUnknown(func(context.Context, pgx.Tx, *asaas.UnknownEvent) error {
		t.Error("a handler of the application ran")
		return nil
	})
	set(events)
	processor := idem.NewProcessor(pool, events)
	processor.Logger = slog.New(slog.DiscardHandler)
	return processor
}

func TestACanaryIsTakenForGenuineByAReceiverOfAsaas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		set    func(*asaas.Dispatcher)
		token  string
		says   string // "" is all is well
	}{
		{"its token is right", func(*asaas.Dispatcher) {}, token, ""},
		{"its token is wrong", func(*asaas.Dispatcher) {}, "guess", "(wrong_token)"},
		{"it has none", func(*asaas.Dispatcher) {}, "", "(missing_token)"},
		{"the token decides the account", func(d *asaas.Dispatcher) {
			d.Accounts = func(*http.Request) ([]idem.Credentials, error) {
				return []idem.Credentials{{Scope: "shop", Secrets: []string{"the shop's"}}}, nil
			}
		}, "the shop's", ""},
		{"Asaas's addresses only", func(d *asaas.Dispatcher) { d.AllowFrom = asaas.OfficialAddresses() }, token, "(address_not_allowed)"},
		{"Asaas's addresses and its own", func(d *asaas.Dispatcher) {
			d.AllowFrom = append(asaas.OfficialAddresses(), netip.MustParsePrefix("127.0.0.0/8"))
		}, token, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			receiver := newReceiver(t, tt.set)
			server := httptest.NewServer(receiver)
			t.Cleanup(server.Close)
			canary := asaas.NewCanary(server.URL, tt.token)
			canary.Logger = nil
			err := canary.Send(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Send = %v, want %q", err, tt.says)
			}
			if stats, err := receiver.Stats(t.Context()); stats != (idem.Stats{}) || err != nil {
				t.Errorf("something is stored: %+v, %v", stats, err)
			}
		})
	}
}

func TestACanaryIsNotDrift(t *testing.T) {
	t.Parallel()
	var events *asaas.Dispatcher
	server := httptest.NewServer(newReceiver(t, func(d *asaas.Dispatcher) { events = d }))
	t.Cleanup(server.Close)
	if err := asaas.NewCanary(server.URL, token).Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := events.Drift(); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// An event of the module's own goes through the real address, again and again.
func ExampleNewCanary() {
	ctx := context.Background()
	shop := newShop(ctx)
	defer shop.close()
	server := httptest.NewServer(shop.processor)
	defer server.Close()

	canary := asaas.NewCanary(server.URL, webhookToken) // "https://shop.example/webhooks/asaas"
	canary.Logger = nil
	fmt.Println(canary.Send(ctx))
	health := health.New(shop.processor, canary)
	_ = canary.Run // by idem.Serve(ctx, server, processor, canary)

	for _, c := range health.Report().Checks {
		if c.Name == "canary" {
			fmt.Println(c.Source, c.Healthy, c.Says)
		}
	}
	// Output:
	// <nil>
	// asaas true it was handled
}
