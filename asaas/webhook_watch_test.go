package asaas_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/health"
)

// brokenAPI fails as a network does.
type brokenAPI struct{ http.RoundTripper }

func (brokenAPI) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// No delivery shows any of it.
func TestHealthSaysWhatKeepsEventsAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		change func(*asaastest.Webhook) // nil: there is none
		says   string                   // "" is well
	}{
		{"as it should be", func(*asaastest.Webhook) {}, ""},
		{"Asaas disables it after 30 days", func(w *asaastest.Webhook) { w.Disabled = true }, "the webhook is disabled"},
		{"a handled type is not subscribed", func(w *asaastest.Webhook) { w.Events = w.Events[:1] }, "PAYMENT_RECEIVED"},
		{"its queue is stopped", func(w *asaastest.Webhook) { w.Interrupted = true }, "the queue is stopped"},
		{"it was deleted", nil, "webhook"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			p := newPlanned(t)
			if c.change != nil {
				w := wanted()
				c.change(&w)
				p.fake.AddWebhook(w)
			}
			watch := asaas.NewWebhookWatch(p.client, p.want, p.events)
			h := health.New(watch)
			h.Logger = nil
			check := watch.Examine(t.Context(), h.Limits)[0]
			if !check.Healthy {
				t.Errorf("before the first look: %+v", check)
			}
			if _, err := watch.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			report := h.Report()
			check = report.Checks[0]
			if report.Healthy != (c.says == "") || check.Name != "webhook" || check.Source != "asaas" || !strings.Contains(check.Says, c.says) {
				t.Errorf("%+v", report)
			}
			if !report.Healthy && !strings.Contains(check.Says, "asaas-queue plan") {
				t.Errorf("it does not say what to do: %s", check.Says)
			}
			p.client.Transport = brokenAPI{}
			p.client.Wait = func(context.Context, time.Duration) error { return nil }
			if _, err := watch.Look(t.Context()); err == nil {
				t.Fatal("a look without a network succeeds")
			}
			if after := watch.Examine(t.Context(), h.Limits)[0]; after.Healthy != (c.says == "") || !strings.Contains(after.Says, "could not be looked at") {
				t.Errorf("after one look that failed: %+v", after)
			}
		})
	}
}
