package webhook_test

import (
	"context"
	"errors"
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
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/idem/value"
)

// listOf is the answer of a list with one webhook.
func listOf(interrupted bool, penalized int) scriptedAnswer {
	return scriptedAnswer{status: 200, body: fmt.Sprintf(
		`{"hasMore":false,"data":[{"id":"a","name":"shop","url":"https://u:p@shop.example/hooks?key=1","enabled":true,"interrupted":%t,"penalizedRequestsCount":%d}]}`,
		interrupted, penalized)}
}

const day = 24 * time.Hour

func TestQueuesTellWhatIsHeldUpAndForHowLong(t *testing.T) {
	t.Parallel()
	sound, stopped, penalized := listOf(false, 0), listOf(true, 15), listOf(false, 3)
	for _, tt := range []struct {
		reason string
		looks  []scriptedAnswer // one a day
		want   time.Duration    // of the last look
	}{
		{"nothing is held up", []scriptedAnswer{sound}, 0},
		{"nobody has seen it sound", []scriptedAnswer{stopped, stopped}, 0},
		{"it was sound a day ago", []scriptedAnswer{sound, penalized}, 13 * day},
		{"the last time that it was sound counts", []scriptedAnswer{sound, stopped, sound, stopped, stopped}, 12 * day},
		{"the time is over", append([]scriptedAnswer{sound}, make([]scriptedAnswer, 15)...), time.Second},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := range tt.looks {
					if tt.looks[n].status == 0 {
						tt.looks[n] = stopped
					}
				}
				client, _ := clientOn(t, tt.looks...)
				queues := webhook.NewQueues(client, webhookToken, nil)
				var got []gauge.Queue
				for n := range tt.looks {
					if n > 0 {
						time.Sleep(day)
					}
					var err error
					if got, err = queues.Queues(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				last := tt.looks[len(tt.looks)-1]
				want := gauge.Queue{ID: "a", Name: "shop", URL: "https://shop.example/hooks", Enabled: true, DeletesIn: tt.want}
				switch last {
				case stopped:
					want.Interrupted, want.Penalized = true, 15
				case penalized:
					want.Penalized = 3
				}
				if diff := cmp.Diff([]gauge.Queue{want}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestQueuesThatAreNotToldAreAnError(t *testing.T) {
	t.Parallel()
	for reason, answer := range map[string]scriptedAnswer{
		"it does not tell whether it is stopped": {status: 200, body: `{"hasMore":false,"data":[{"id":"a","penalizedRequestsCount":0}]}`},
		"it does not tell what failed":           {status: 200, body: `{"hasMore":false,"data":[{"id":"a","interrupted":false}]}`},
		"the key is not taken":                   {status: 401, body: `{}`},
	} {
		client, _ := clientOn(t, answer)
		got, err := webhook.NewQueues(client, webhookToken, nil).Queues(t.Context())
		if err == nil || got != nil {
			t.Errorf("%s: got %v, %v", reason, got, err)
		}
	}
}

func TestAQueueIsReleasedOnceTheWayIsProved(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		outage time.Duration
		want   string
	}{
		{"it is slowed down", time.Hour, "the way is proved, handlers were not tried; the penalty is removed; recovered: Asaas counts no failures any more"},
		{"it is stopped", day, "the way is proved, handlers were not tried; the queue is resumed; recovered: Asaas counts no failures any more"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			o := newOutage(t, tt.outage)
			client := o.fake.Client() // its pauses pass in virtual time
			did, err := webhook.NewQueues(client, "", nil).Release(t.Context(), o.id)
			if did != "" || err == nil || !strings.Contains(err.Error(), "nothing was changed: the webhook's token is empty") || len(o.changes()) != 0 {
				t.Errorf("without a token it did %q, %v: %v", did, o.changes(), err)
			}
			o.broken.Store(false)
			queues := webhook.NewQueues(client, webhookToken, nil)
			if did, err = queues.Release(t.Context(), o.id); did != tt.want || err != nil {
				t.Errorf("Release = %q, %v, want %q", did, err, tt.want)
			}
			all, err := queues.Queues(t.Context())
			if err != nil || len(all) != 1 || all[0].Interrupted || all[0].Penalized != 0 {
				t.Errorf("afterwards it is %+v, %v", all, err)
			}
		})
	}
}

func TestAReleaseThatFailsTellsWhatItDid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := clientOn(t, looked(false, 9), scriptedAnswer{status: 204}, looked(false, 12))
		did, err := webhook.NewQueues(client, webhookToken, nil).Release(t.Context(), "a")
		if did != "the way is proved, handlers were not tried; the penalty is removed" || err == nil || !strings.Contains(err.Error(), "there are new failures") {
			t.Errorf("Release = %q, %v", did, err)
		}
	})
}

// Whoever watches the queues sees how long there is left.
func ExampleQueues() {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{Name: "shop", Handler: http.NotFoundHandler()})
	queues := webhook.NewQueues(fake.Client(), webhookToken, nil)
	ctx := context.Background()
	_, _ = queues.Queues(ctx) // while all is well

	fake.Emit(asaastest.Event(asaas.EventPaymentReceived))
	fake.Advance(day)
	all, err := queues.Queues(ctx)
	for _, q := range all {
		fmt.Println(q.Name, q.Interrupted, q.Penalized, "failures")
		fmt.Println("less than 14 days left:", q.DeletesIn > 0 && q.DeletesIn < 14*day)
	}
	fmt.Println(err)
	// Output:
	// shop true 15 failures
	// less than 14 days left: true
	// <nil>
}

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
			if !report.Healthy && !strings.Contains(check.Says, ": asaas-queue ") {
				t.Errorf("it does not say what to do: %s", check.Says)
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
			if says := watch.Examine(t.Context(), check.Limits{})[0].Says; !strings.Contains(plan.String(), found[0].Problem) || says != found[0].Problem+": "+found[0].Command {
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
	if r := refused(); r.Healthy || !strings.Contains(r.Says, "give it to both sides") {
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
