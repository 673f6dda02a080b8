package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/idem/value"
)

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
			watch := webhook.NewWatch(p.client, p.want, p.events)
			h := health.New(watch)
			h.Logger = nil
			check := watch.Examine(t.Context(), h.Limits)[0]
			if !check.Healthy {
				t.Errorf("before the first look: %+v", check)
			}
			if _, _, err := watch.Problems(t.Context()); err != nil {
				t.Fatal(err)
			}
			report := h.Report()
			check = report.Checks[0]
			if report.Healthy != (c.says == "") || check.Name != "webhook" || check.Source != "asaas" || !strings.Contains(check.Says, c.says) {
				t.Errorf("%+v", report)
			}
			if !report.Healthy && !strings.HasPrefix(check.Command, "asaas-queue ") {
				t.Errorf("it does not say what to do: %+v", check)
			}
			p.client.Transport = brokenAPI{}
			p.client.Wait = func(context.Context, time.Duration) error { return nil }
			if _, _, err := watch.Problems(t.Context()); err == nil {
				t.Fatal("a look without a network succeeds")
			}
			if after := watch.Examine(t.Context(), h.Limits)[0]; after.Healthy != (c.says == "") || !strings.Contains(after.Says, "could not be looked at") {
				t.Errorf("after one look that failed: %+v", after)
			}
		})
	}
}

var _ doctor.Webhook = (*webhook.Watch)(nil)

// Each is found, in the words of asaas-queue and of health; what the advice names repairs it.
func TestDoctorWithAClientSaysWhatKeepsEventsAwayAndTheAdviceRepairsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason  string
		change  func(*asaastest.Webhook) // nil: there is none
		problem string                   // "" is well
		verb    string                   // of the command
	}{
		{"as it should be", func(*asaastest.Webhook) {}, "", ""},
		{"disabled", func(w *asaastest.Webhook) { w.Disabled = true }, "the webhook is disabled: Asaas makes no events for it", "enable"},
		{"interrupted", func(w *asaastest.Webhook) { w.Interrupted = true }, "the queue is stopped: nothing is delivered", "recover"},
		{"not subscribed", func(w *asaastest.Webhook) { w.Events = w.Events[:1] }, "PAYMENT_RECEIVED is handled and not subscribed to: it never comes", "apply"},
		{"not sequential", func(w *asaastest.Webhook) { w.SendType = asaastest.NonSequentially }, "events are sent NON_SEQUENTIALLY, not SEQUENTIALLY", "apply"},
		{"deleted", nil, `the account has no webhook of the name "shop"`, "apply"},
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
			watch := webhook.NewWatch(p.client, p.want, p.events)
			found := doctor.CheckWebhooks(t.Context(), watch)
			if c.problem == "" {
				if len(found) > 0 {
					t.Errorf("it finds %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Check != "webhook" || found[0].Source != "asaas" || found[0].Severity != doctor.Error ||
				!strings.HasPrefix(found[0].Problem, c.problem) || !strings.HasPrefix(found[0].Command, "asaas-queue "+c.verb+" ") {
				t.Fatalf("it finds %v", found)
			}
			plan := p.plan(t)
			says := watch.Examine(t.Context(), check.Limits{})[0]
			if !strings.Contains(plan.String(), found[0].Problem) || says.Says != found[0].Problem || says.Command != found[0].Command {
				t.Errorf("doctor says %v, plan %s, health %+v", found[0], plan, says)
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
		found := doctor.CheckWebhooks(t.Context(), webhook.NewWatch(p.client, p.want, p.events))
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

// The token is changed at Asaas only. The first look after Asaas has counted a failure shows it, if no genuine delivery
// came since the look before.
func TestATokenThatWasChangedAtOneSideIsRedAfterALook(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	url, pool := application(t, webhookToken, handleTwo)
	inbox := idem.NewInbox(pool, p.events)
	inbox.WorkFirst, inbox.Logger = true, nil
	url, _, _ = strings.Cut(url, "?")
	p.want.URL = url
	w := wanted()
	lost := false // the application answers, and its answers do not arrive
	w.URL, w.Handler = url, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost {
			inbox.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		inbox.ServeHTTP(w, r)
	})
	id := p.fake.AddWebhook(w)
	watch := webhook.NewWatch(p.client, p.want, p.events)
	look := func() {
		t.Helper()
		if problems, _, err := watch.Problems(t.Context()); len(problems) != 0 || err != nil {
			t.Fatal(problems, err)
		}
	}
	h := health.New(inbox, watch)
	h.Logger = nil
	refused := func() check.Result {
		t.Helper()
		for _, c := range append(inbox.Examine(t.Context(), h.Limits), watch.Examine(t.Context(), h.Limits)...) {
			if c.Name == "refused" {
				return c
			}
		}
		t.Fatal("there is no check of refused deliveries")
		return check.Result{}
	}
	strangerGuesses := func() {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/webhooks/asaas", strings.NewReader("{}"))
		r.Header.Set(asaas.TokenHeader, "a token that a stranger has guessed")
		inbox.ServeHTTP(httptest.NewRecorder(), r)
	}

	look()
	strangerGuesses()
	look()
	if r := refused(); !r.Healthy {
		t.Errorf("a stranger's guess: %s", r.Says)
	}
	lost = true
	p.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	p.fake.Settle() // a genuine one
	lost = false
	strangerGuesses()
	look()
	if r := refused(); !r.Healthy {
		t.Errorf("a stranger's guess, after genuine deliveries that failed: %s", r.Says)
	}
	p.fake.Advance(time.Hour)
	look()

	if _, err := p.client.UpdateWebhook(t.Context(), id, asaas.WebhookUpdate{AuthToken: value.Of("another-token-that-only-Asaas-knows")}); err != nil {
		t.Fatal(err)
	}
	p.fake.Emit(asaastest.Event("PAYMENT_REFUNDED"))
	p.fake.Settle()
	if r := refused(); !r.Healthy {
		t.Errorf("before a look: %s", r.Says)
	}
	look()
	if r := refused(); r.Healthy || !strings.Contains(r.String(), "give it to both sides") {
		t.Errorf("after a look: %t, %s", r.Healthy, r.Says)
	}

	if _, err := p.client.UpdateWebhook(t.Context(), id, asaas.WebhookUpdate{AuthToken: value.Of(webhookToken)}); err != nil {
		t.Fatal(err)
	}
	p.fake.Advance(time.Hour) // Asaas tries again
	if r := refused(); !r.Healthy {
		t.Errorf("repaired: %s", r.Says)
	}
	strangerGuesses()
	p.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	p.fake.Settle()
	look()
	if r := refused(); !r.Healthy {
		t.Errorf("a stranger's guess after it was repaired: %s", r.Says)
	}
}

// The provider's count may be a history that never falls: only its rise says that deliveries fail, since the look before.
func TestAWatchSaysSinceWhenAsaasCountsFailedDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := clientOn(t, listOf(false, 2), listOf(false, 2), listOf(false, 3), listOf(false, 3), listOf(false, 0), listOf(false, 1))
		want := webhook.Settings{Name: "shop", URL: "https://shop.example/hooks", Types: []asaas.EventType{asaas.EventPaymentReceived}}
		all := webhook.NewWatches(func(yield func(string, *asaas.Client) bool) { yield("seller", client) }, func(string) webhook.Settings { return want }, nil)
		start, got := time.Now(), []string{}
		for range 6 {
			if _, _, err := all.Problems(t.Context()); err != nil {
				t.Fatal(err)
			}
			since := "never"
			if at := all.Failed(); !at.IsZero() {
				since = at.Sub(start).String()
			}
			got = append(got, since)
			time.Sleep(time.Minute)
		}
		if diff := cmp.Diff([]string{"never", "never", "1m0s", "1m0s", "1m0s", "4m0s"}, got); diff != "" {
			t.Errorf("after each look, failed since (-want +got):\n%s", diff)
		}
	})
}
