package asaas_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/doctor"
)

var _ doctor.Webhook = (*asaas.WebhookWatch)(nil)

// Each is found, in the words of asaas-queue and of health; what the advice names repairs it.
func TestDoctorWithAClientSaysWhatKeepsEventsAwayAndTheAdviceRepairsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason  string
		change  func(*asaastest.Webhook) // nil: there is none
		problem string                   // "" is well
	}{
		{"as it should be", func(*asaastest.Webhook) {}, ""},
		{"disabled", func(w *asaastest.Webhook) { w.Disabled = true }, "the webhook is disabled: Asaas makes no events for it"},
		{"interrupted", func(w *asaastest.Webhook) { w.Interrupted = true }, "the queue is stopped: nothing is delivered"},
		{"not subscribed", func(w *asaastest.Webhook) { w.Events = w.Events[:1] }, "PAYMENT_RECEIVED is handled and not subscribed to: it never comes"},
		{"not sequential", func(w *asaastest.Webhook) { w.SendType = asaastest.NonSequentially }, "events are sent NON_SEQUENTIALLY, not SEQUENTIALLY"},
		{"deleted", nil, `the account has no webhook of the name "shop"`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			p := newPlanned(t)
			p.served(t, webhookToken)
			if c.change != nil {
				w := wanted()
				w.URL = p.want.URL
				c.change(&w)
				p.fake.AddWebhook(w)
			}
			watch := asaas.NewWebhookWatch(p.client, p.want, p.events)
			found := doctor.CheckWebhooks(t.Context(), watch)
			if c.problem == "" {
				if len(found) > 0 {
					t.Errorf("it finds %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Check != "webhook" || found[0].Source != "asaas" || found[0].Severity != doctor.Error ||
				!strings.HasPrefix(found[0].Problem, c.problem) || !strings.Contains(found[0].Remedy, "asaas-queue apply repairs") {
				t.Fatalf("it finds %v", found)
			}
			plan := p.plan(t)
			if says, _ := watch.Findings(); !strings.Contains(plan.String(), found[0].Problem) || strings.Join(says, "") != found[0].Problem {
				t.Errorf("doctor says %q, plan %s, health %q", found[0].Problem, plan, says)
			}
			if _, err := plan.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if found := doctor.CheckWebhooks(t.Context(), watch); len(found) > 0 {
				t.Errorf("after apply it finds %v", found)
			}
		})
	}
}

func TestDoctorSaysThatAsaasDoesNotAnswerAndNoKey(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.fake.AddWebhook(wanted())
	p.client.Wait = func(context.Context, time.Duration) error { return nil }
	for reason, way := range map[string]http.RoundTripper{"no network": brokenAPI{}, "another key": otherKey{}} {
		p.client.Transport = way
		found := doctor.CheckWebhooks(t.Context(), asaas.NewWebhookWatch(p.client, p.want, p.events))
		if len(found) != 1 || found[0].Severity != doctor.Warning || found[0].Evidence == "" || found[0].Remedy == "" {
			t.Errorf("%s: it finds %v", reason, found)
		}
		if said := fmt.Sprint(found); strings.Contains(said, p.fake.APIKey) || strings.Contains(said, webhookToken) {
			t.Errorf("%s: a secret is in %s", reason, said)
		}
	}
}

// otherKey sends a key that is not the account's.
type otherKey struct{}

func (otherKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("access_token", "$aact_hmlg_of-another")
	return http.DefaultTransport.RoundTrip(r)
}
