package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

// writes are the API's changes that were asked for.
type writes struct {
	http.RoundTripper
	methods []string
	fail    error // of a write, after it was done
}

func (w *writes) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if r.Method == http.MethodGet {
		return response, err
	}
	w.methods = append(w.methods, r.Method)
	if w.fail != nil && err == nil {
		response.Body.Close()
		return nil, w.fail
	}
	return response, err
}

func (p *planned) watchWrites() *writes {
	w := &writes{RoundTripper: http.DefaultTransport}
	p.client.Transport = w
	return w
}

func TestApplyCreatesAWebhookOnceTheReceiverAcceptsTheToken(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.served(t, webhookToken)
	plan := p.plan(t)
	want := []webhook.Difference{{
		Field: "webhook", Repairable: true, LosesEvents: true,
		Text: `the account has no webhook of the name "shop" or the URL ` + p.want.URL + ": no event comes",
	}}
	if diff := cmp.Diff(want, plan.Differences); diff != "" || plan.Webhook != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
	writes := p.watchWrites()
	applied, err := plan.Apply(t.Context())
	if err != nil || len(applied.Left) > 0 || applied.Did[0] != "the webhook was created: 2 event types" {
		t.Fatalf("%v, %v", applied, err)
	}
	got := p.fake.Webhook(applied.Webhook.ID)
	if got.Name != "shop" || got.URL != p.want.URL || got.Token != webhookToken || got.Email != "ops@shop.example" || got.Disabled || got.Interrupted ||
		got.APIVersion != 3 || got.SendType != asaastest.Sequentially || !slices.Equal(got.Events, []asaas.EventType{"PAYMENT_RECEIVED", "PAYMENT_REFUNDED"}) {
		t.Errorf("created: %+v", got)
	}
	if applied, err = p.plan(t).Apply(t.Context()); err != nil || applied.Did != nil || !slices.Equal(writes.methods, []string{"POST"}) {
		t.Errorf("the second time: %v, %v, %v", applied, err, writes.methods)
	}
	if _, err := plan.Apply(t.Context()); err == nil || len(writes.methods) != 1 {
		t.Errorf("the old plan is applied again: %v, %v", err, writes.methods)
	}
}

func TestATokenThatTheReceiverRefusesIsNotSentToAsaas(t *testing.T) {
	t.Parallel()
	const other = "the-token-of-nobody-in-this-whole-test"
	for reason, at := range map[string]func(*planned){
		"a new webhook":             func(*planned) {},
		"a webhook without a token": func(p *planned) { p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: p.want.URL}) },
		"a webhook with another URL": func(p *planned) {
			p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: shopURL, Token: webhookToken})
		},
		"nothing listens at the URL":  func(p *planned) { p.want.URL = "http://127.0.0.1:1/asaas" },
		"the receiver is someone's":   func(p *planned) { p.want.URL = p.fake.URL },
		"a new webhook without token": func(p *planned) { p.want.Token = "" },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			p := newPlanned(t)
			p.served(t, other)
			at(p)
			plan, writes := p.plan(t), p.watchWrites()
			applied, err := plan.Apply(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "webhook: Apply: nothing was changed: ") || !strings.Contains(err.Error(), "token") ||
				writes.methods != nil || applied.Did != nil {
				t.Errorf("%v, %v, %v", applied, err, writes.methods)
			}
			if strings.Contains(err.Error(), webhookToken) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestAnAccountWithoutPixAutomaticGetsTheOtherTypes(t *testing.T) {
	t.Parallel()
	const pix = asaas.EventPixAutomaticRecurringAuthorizationCreated
	for reason, at := range map[string]func(*planned){
		"a new webhook": func(*planned) {},
		"a webhook that lacks a type": func(p *planned) {
			p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: p.want.URL, Email: p.want.Email, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentReceived}})
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			p := newPlanned(t)
			p.served(t, webhookToken)
			p.fake.NoPixAutomatic = true
			p.want.Types = []asaas.EventType{pix}
			at(p)
			applied, err := p.plan(t).Apply(t.Context())
			refused, ok := errors.AsType[*webhook.TypesError](err)
			if !ok || !slices.Equal(refused.Types, []asaas.EventType{pix}) || !strings.Contains(err.Error(), string(pix)) || applied.Did != nil {
				t.Fatalf("%v, %v", applied, err)
			}
			p.want.NoPixAutomatic = true
			plan := p.plan(t)
			if says := plan.String(); !strings.Contains(says, "left out, and never delivered: "+string(pix)) {
				t.Errorf("the plan says %s", says)
			}
			applied, err = plan.Apply(t.Context())
			if err != nil || len(applied.Left) > 0 {
				t.Fatalf("%v, %v", applied, err)
			}
			got := p.fake.Webhook(applied.Webhook.ID).Events
			slices.Sort(got)
			if !slices.Equal(got, []asaas.EventType{"PAYMENT_RECEIVED", "PAYMENT_REFUNDED"}) {
				t.Errorf("it gets %v", got)
			}
		})
	}
}

// A webhook keeps the types of Pix Automático that it has: they are not left out, and no reason for a refusal.
func TestTypesOfPixAutomaticThatAWebhookHasAreKept(t *testing.T) {
	t.Parallel()
	const pix = asaas.EventPixAutomaticRecurringAuthorizationCreated
	for _, isRefused := range []bool{false, true} {
		p := newPlanned(t)
		p.served(t, webhookToken)
		p.fake.NoPixAutomatic = isRefused
		p.want.Types, p.want.NoPixAutomatic = []asaas.EventType{pix}, true
		id := p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: p.want.URL, Email: p.want.Email, Token: webhookToken, Events: []asaas.EventType{pix}})
		plan := p.plan(t)
		if plan.LeftOut != nil || strings.Contains(plan.String(), "left out") {
			t.Errorf("the plan says %s", plan)
		}
		applied, err := plan.Apply(t.Context())
		if isRefused {
			if _, ok := errors.AsType[*webhook.TypesError](err); ok || err == nil {
				t.Errorf("refused with %v", err)
			}
			continue
		}
		got := p.fake.Webhook(id).Events
		slices.Sort(got)
		if err != nil || len(applied.Left) > 0 || !slices.Equal(got, []asaas.EventType{"PAYMENT_RECEIVED", "PAYMENT_REFUNDED", pix}) {
			t.Errorf("it gets %v: %v, %v", got, applied, err)
		}
	}
}

func TestARefusalForAnotherReasonNamesNoTypes(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.served(t, webhookToken)
	p.want.Email = "no address"
	_, err := p.plan(t).Apply(t.Context())
	if _, ok := errors.AsType[*webhook.TypesError](err); ok || err == nil {
		t.Errorf("got %v", err)
	}
}

// Asaas promises nothing of what a PUT does with a type, or with what is left out.
func TestWhatIsDifferentAfterAllIsTold(t *testing.T) {
	t.Parallel()
	const (
		begin = `{"id":"a","name":"shop","url":"` + shopURL + `","email":"ops@shop.example","interrupted":false,"apiVersion":3,"sendType":"SEQUENTIALLY","penalizedRequestsCount":0,`
		list  = `{"hasMore":false,"data":[` + begin
	)
	answer := func(body string) scriptedAnswer { return scriptedAnswer{status: 200, body: body} }
	before := answer(list + `"enabled":false,"hasAuthToken":true,"events":["NEWS","PAYMENT_RECEIVED","PAYMENT_REFUNDED"]}]}`)
	client, s := clientOn(t, before, before, answer(`{"id":"a"}`),
		answer(begin+`"enabled":true,"hasAuthToken":false,"events":["PAYMENT_RECEIVED"]}`))
	p := newPlanned(t)
	p.client, p.want.Token = client, ""
	applied, err := p.plan(t).Apply(t.Context())
	want := `repaired: the webhook is disabled: Asaas makes no events for it, and those of this time never come
still different: the webhook has no token, so its deliveries are refused: give the application's token with the settings (not repaired by apply)
still different: PAYMENT_REFUNDED is handled and not subscribed to: it never comes (apply repairs it)
still different: NEWS was subscribed to before, and is no more: subscribe to it on Asaas's screen (not repaired by apply)
next: run a reconcile from the day on which the webhook was disabled, or its queue was stopped before that: Asaas made no events while it was disabled, and they never come`
	if diff := cmp.Diff(want, applied.String()); err != nil || diff != "" || s.sent.Load() != 4 {
		t.Errorf("%v, %d calls (-want +got):\n%s", err, s.sent.Load(), diff)
	}
}

func TestOnlyWhatThePlanShowsIsApplied(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(p *planned, id string){
		"somebody subscribed to another type": func(p *planned, id string) {
			if _, err := p.client.UpdateWebhook(context.Background(), id, update(asaas.EventPaymentReceived, asaas.EventBillPaid)); err != nil {
				panic(err)
			}
		},
		"somebody repaired it": func(p *planned, id string) {
			if _, err := p.client.UpdateWebhook(context.Background(), id, update(asaas.EventPaymentReceived, asaas.EventPaymentRefunded)); err != nil {
				panic(err)
			}
		},
		"somebody deleted it": func(p *planned, id string) {
			if err := p.client.DeleteWebhook(context.Background(), id); err != nil {
				panic(err)
			}
		},
		"there is a second one": func(p *planned, _ string) { p.fake.AddWebhook(wanted()) },
		"another type is handled": func(p *planned, _ string) {
			p.events.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			p, w := newPlanned(t), wanted()
			w.Events = w.Events[:1]
			id := p.fake.AddWebhook(w)
			plan := p.plan(t)
			change(p, id)
			writes := p.watchWrites()
			if _, err := plan.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was changed: the webhook or the handlers have changed") || writes.methods != nil {
				t.Errorf("%v, %v", err, writes.methods)
			}
		})
	}
}

func TestAnAnswerThatIsLostIsToldAndApplyingAgainIsSafe(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.served(t, webhookToken)
	writes := p.watchWrites()
	writes.fail = errors.New("connection reset")
	_, err := p.plan(t).Apply(t.Context())
	if e, ok := errors.AsType[*asaas.APIError](err); !ok || e.Outcome != asaas.CallUnknown {
		t.Errorf("got the error %v", err)
	}
	writes.fail = nil
	applied, err := p.plan(t).Apply(t.Context())
	if err != nil || applied.Did != nil || !slices.Equal(writes.methods, []string{"POST"}) {
		t.Errorf("the second time: %v, %v, %v", applied, err, writes.methods)
	}
}

func update(types ...asaas.EventType) asaas.WebhookUpdate {
	return asaas.WebhookUpdate{Events: value.Of(types)}
}

func TestATokenIsRotatedOnlyIfTheReceiverAcceptsTheNewOne(t *testing.T) {
	t.Parallel()
	const next = "the-next-token-of-the-webhook-of-the-test"
	p := newPlanned(t)
	ran := 0
	url, _ := application(t, next, func(events *asaas.Dispatcher) {
		events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { ran++; return nil })
		events.OnUnknown(func(context.Context, pgx.Tx, *asaas.UnknownEvent) error { ran++; return nil })
	})
	id := p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: url, Token: webhookToken})
	for reason, token := range map[string]string{"nobody accepts it": "another-token-of-the-webhook-of-the-test", "it is empty": " "} {
		writes := p.watchWrites()
		err := webhook.RotateToken(t.Context(), p.client, id, token)
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") || writes.methods != nil || strings.TrimSpace(token) != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, %v", reason, err, writes.methods)
		}
	}
	if err := webhook.RotateToken(t.Context(), p.client, id, next); err != nil || p.fake.Webhook(id).Token != next || ran != 0 {
		t.Errorf("%v, the token is %q, handlers ran %d times", err, p.fake.Webhook(id).Token, ran)
	}
	old := p.fake.AddWebhook(asaastest.Webhook{Name: "old", URL: url, APIVersion: 2})
	if err := webhook.RotateToken(t.Context(), p.client, old, next); err == nil || !strings.Contains(err.Error(), "apiVersion 2") {
		t.Errorf("apiVersion 2: %v", err)
	}
}

// The webhook has the new token: an outcome that says otherwise would have a person end it.
func TestAReadThatFailsAfterTheTokenChangedDoesNotDenyTheChange(t *testing.T) {
	t.Parallel()
	const next = "the-next-token-of-the-webhook-of-the-test"
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		p := newPlanned(t)
		url, _ := application(t, next, handleTwo)
		id := p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: url, Token: webhookToken})
		p.fake.InjectAPI(nil, nil, asaastest.APIStatus(status)) // it is read, changed, and read
		err := webhook.RotateToken(t.Context(), p.client, id, next)
		e, ok := errors.AsType[*asaas.APIError](err)
		if !ok || e.Outcome != asaas.CallUnknown || e.Status != status || !strings.Contains(err.Error(), "the token was changed") || p.fake.Webhook(id).Token != next {
			t.Errorf("%d: %v, the token is %q", status, err, p.fake.Webhook(id).Token)
		}
	}
}

// During a rotation both tokens verify, and no event is refused.
func TestNothingIsRefusedDuringARotation(t *testing.T) {
	t.Parallel()
	const next = "the-next-token-of-the-webhook-of-the-test"
	p := newPlanned(t)
	events := asaas.NewDispatcher(webhookToken, next)
	handleTwo(events)
	url, handled := served(t, events)
	id := p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: url, Token: webhookToken})
	p.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	p.fake.Settle()
	p.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	if err := webhook.RotateToken(t.Context(), p.client, id, next); err != nil {
		t.Fatal(err)
	}
	p.fake.Emit(asaastest.Event("PAYMENT_REFUNDED"))
	p.fake.Settle()
	if w := p.fake.Webhook(id); w.Pending != 0 || w.Penalized != 0 || handled() != 3 {
		t.Errorf("%d events wait, %d failed, %d are handled", w.Pending, w.Penalized, handled())
	}
}

// served is an application that verifies with a dispatcher; handled counts its
// events that are done.
func served(t *testing.T, events *asaas.Dispatcher) (url string, handled func() int64) {
	t.Helper()
	pool := testkit.Open(t)
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	server := httptest.NewServer(inbox)
	t.Cleanup(server.Close)
	return server.URL, func() (n int64) {
		if err := pool.QueryRow(context.Background(), `select count(*) from idem_events where state = 'done'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}
