package asaas_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// The token was changed in the application, and not at Asaas.
func TestHealthIsRedBeforeAsaasStopsAQueueForAWrongToken(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher("the new token of the shop, of 40 characters")
	events.AllowFrom = asaas.OfficialAddresses()
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler)
	h := health.New(inbox)
	h.Logger = nil
	isRed := func() bool {
		for _, c := range inbox.Examine(t.Context(), h.Limits) {
			if c.Name == "refused" {
				return !c.Healthy
			}
		}
		t.Fatal("there is no such check")
		return false
	}

	fake := asaastest.New()
	t.Cleanup(fake.Close)
	fake.AddWebhook(asaastest.Webhook{
		Token: "the old token of the shop, of 40 characters.",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = asaas.OfficialAddresses()[1].Addr().String() + ":40000"
			inbox.ServeHTTP(w, r)
		}),
	})
	failures, redAt, paused := 0, 0, false
	fake.Observe = func(e asaastest.Entry) {
		switch e.Kind {
		case asaastest.Failed:
			if failures++; redAt == 0 && isRed() {
				redAt = failures
			}
		case asaastest.Paused:
			paused = true
		}
	}
	fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	fake.Advance(13 * time.Hour)
	if !paused || failures != 15 || redAt != 5 {
		t.Errorf("health is red after %d of %d failures, paused %t; want 5 of 15 and paused", redAt, failures, paused)
	}
}
