package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/optional"
)

// planned is an account at a fake Asaas over HTTP, and an application for its
// webhook.
type planned struct {
	fake   *asaastest.Fake
	client *asaas.Client
	want   asaas.WebhookSettings
	events *asaas.Dispatcher
}

const shopURL = "https://shop.example/webhooks/asaas"

func newPlanned(t *testing.T) *planned {
	t.Helper()
	p := &planned{
		fake:   asaastest.NewServer(),
		want:   asaas.WebhookSettings{Name: "shop", URL: shopURL, Email: "ops@shop.example", Token: webhookToken},
		events: asaas.NewDispatcher(webhookToken),
	}
	t.Cleanup(p.fake.Close)
	handleTwo(p.events)
	var err error
	if p.client, err = asaas.NewClient(asaas.Sandbox, p.fake.APIKey); err != nil {
		t.Fatal(err)
	}
	p.client.BaseURL = p.fake.URL + "/v3"
	return p
}

// handleTwo registers the handlers of the application.
func handleTwo(events *asaas.Dispatcher) {
	nothing := func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	events.OnPaymentReceived(nothing)
	events.OnPaymentRefunded(nothing)
}

// wanted is the webhook as the application wants it.
func wanted() asaastest.Webhook {
	return asaastest.Webhook{
		Name: "shop", URL: shopURL, Email: "ops@shop.example", Token: webhookToken,
		Events: []asaas.EventType{asaas.EventPaymentRefunded, asaas.EventPaymentReceived},
	}
}

// served has an application verify at the wanted URL.
func (p *planned) served(t *testing.T, token string) {
	t.Helper()
	url, _ := application(t, token, handleTwo)
	p.want.URL, _, _ = strings.Cut(url, "?")
}

func (p *planned) plan(t *testing.T) *asaas.WebhookPlan {
	t.Helper()
	plan, err := asaas.PlanWebhook(t.Context(), p.client, p.want, p.events)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", plan, plan, plan), webhookToken) {
		t.Errorf("the plan shows the token: %v", plan)
	}
	return plan
}

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

func TestAPlanFindsEachDifferenceAndApplyRepairsWhatTheAPICan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason   string
		at       func(w *asaastest.Webhook)
		want     func(p *planned)
		says     []string // a line each
		loses    bool
		repaired bool
		next     string
	}{
		{reason: "as wanted", repaired: true},
		{
			reason: "the order of types and the case of an address are no difference",
			at: func(w *asaastest.Webhook) {
				w.Email = "Ops@shop.example"
				w.Events = []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}
			},
			repaired: true,
		},
		{
			reason: "disabled", at: func(w *asaastest.Webhook) { w.Disabled = true },
			says:  []string{"the webhook is disabled: Asaas makes no events for it, and those of this time never come (apply repairs it)"},
			loses: true, repaired: true, next: "run a reconcile from the day on which the webhook was disabled",
		},
		{
			reason: "interrupted", at: func(w *asaastest.Webhook) { w.Interrupted = true },
			says:  []string{"the queue is stopped: nothing is delivered, and Asaas deletes what has waited for 14 days (apply repairs it)"},
			loses: true, repaired: true, next: "run a reconcile from the day on which the queue was stopped",
		},
		{
			reason: "another query of the URL, found by its name", at: func(w *asaastest.Webhook) { w.URL += "?secret=old" },
			want:  func(p *planned) { p.want.Token = "" },
			says:  []string{"the URL differs from the application's in its query, which is not shown (apply repairs it)"},
			loses: true, repaired: true,
		},
		{
			reason: "another URL, found by its name", at: func(w *asaastest.Webhook) { w.URL = "https://old.example/asaas" },
			want:  func(p *planned) { p.want.Token = "" },
			says:  []string{"events are delivered to https://old.example/asaas, not to " + shopURL + " (apply repairs it)"},
			loses: true, repaired: true,
		},
		{
			reason: "apiVersion 2", at: func(w *asaastest.Webhook) { w.APIVersion = 2 },
			says: []string{"apiVersion is 2, whose deliveries do not verify: Asaas cannot change it, so make a new webhook with apiVersion 3, " +
				"and delete this one once its queue is empty (not repaired by apply)"},
			loses: true,
		},
		{
			reason: "not in order", at: func(w *asaastest.Webhook) { w.SendType = asaastest.NonSequentially },
			says:  []string{"events are sent NON_SEQUENTIALLY, not SEQUENTIALLY: an older event of a charge may be handled after a newer one (apply repairs it)"},
			loses: true, repaired: true,
		},
		{
			reason: "in order, which nothing needs",
			want:   func(p *planned) { p.want.SendType = asaas.WebhookSendTypeNonSequentially },
			says:   []string{"events are sent SEQUENTIALLY, not NON_SEQUENTIALLY: one event that fails holds up all others (apply repairs it)"}, repaired: true,
		},
		{
			reason: "no token, and none given", at: func(w *asaastest.Webhook) { w.Token = "" },
			want:  func(p *planned) { p.want.Token = "" },
			says:  []string{"the webhook has no token, so its deliveries are refused: give the application's token with the settings (not repaired by apply)"},
			loses: true,
		},
		{
			reason: "a handled type is not subscribed to", at: func(w *asaastest.Webhook) { w.Events = []asaas.EventType{asaas.EventPaymentReceived} },
			says:  []string{"PAYMENT_REFUNDED is handled and not subscribed to: it never comes (apply repairs it)"},
			loses: true, repaired: true, next: "run a reconcile from the day on which the application began to handle",
		},
		{
			reason: "a type is not handled", at: func(w *asaastest.Webhook) {
				w.Events = append(w.Events, asaas.EventTransferDone, asaas.EventPaymentOverdue)
			},
			says: []string{"subscribed to and not handled: PAYMENT_OVERDUE, TRANSFER_DONE (apply repairs it)"}, repaired: true,
		},
		{
			reason: "a type is ignored, or wanted by the settings",
			at: func(w *asaastest.Webhook) {
				w.Events = append(w.Events, asaas.EventTransferDone, asaas.EventPaymentOverdue)
			},
			want: func(p *planned) {
				p.events.Ignore(asaas.EventTransferDone)
				p.want.Types = []asaas.EventType{asaas.EventPaymentOverdue}
			},
			repaired: true,
		},
		{
			reason: "another name, found by its URL", at: func(w *asaastest.Webhook) { w.Name, w.URL = "old", strings.Replace(shopURL, "shop", "SHOP", 1) },
			want: func(p *planned) { p.want.Token = "" },
			says: []string{
				"events are delivered to https://SHOP.example/webhooks/asaas, not to https://shop.example/webhooks/asaas (apply repairs it)",
				`its name is "old", not "shop" (apply repairs it)`,
			},
			loses: true, repaired: true,
		},
		{
			reason: "another e-mail", at: func(w *asaastest.Webhook) { w.Email = "someone@else.example" },
			says: []string{"Asaas writes to another address than the settings' Email when deliveries fail: " +
				"its API cannot change that, change it on Asaas's screen (not repaired by apply)"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			p, w := newPlanned(t), wanted()
			if tt.at != nil {
				tt.at(&w)
			}
			if tt.want != nil {
				tt.want(p)
			}
			id := p.fake.AddWebhook(w)
			plan := p.plan(t)
			var says []string
			loses := false
			for _, d := range plan.Differences {
				says = append(says, d.String())
				loses = loses || d.LosesEvents
			}
			if diff := cmp.Diff(tt.says, says); diff != "" || loses != tt.loses || plan.Webhook.ID != id {
				t.Errorf("events are lost: %t, of %s (-want +got):\n%s", loses, plan.Webhook.ID, diff)
			}
			applied, err := plan.Apply(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if repaired := len(applied.Left) == 0; repaired != tt.repaired || !strings.Contains(strings.Join(applied.Next, "\n"), tt.next) || tt.next == "" && applied.Next != nil {
				t.Errorf("applied:\n%v", applied)
			}
			if again := p.plan(t); cmp.Diff(applied.Left, again.Differences) != "" {
				t.Errorf("after %v\nthe plan is %v", applied, again)
			}
			if !tt.repaired {
				return
			}
			writes := p.watchWrites()
			if applied, err = p.plan(t).Apply(t.Context()); err != nil || applied.String() != "nothing was changed" || writes.methods != nil {
				t.Errorf("the second time: %v\n%v, %v", applied, err, writes.methods)
			}
		})
	}
}

func TestApplyCreatesAWebhookOnceTheReceiverAcceptsTheToken(t *testing.T) {
	t.Parallel()
	p := newPlanned(t)
	p.served(t, webhookToken)
	plan := p.plan(t)
	want := []asaas.WebhookDifference{{
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
			if err == nil || !strings.HasPrefix(err.Error(), "asaas: Apply: nothing was changed: ") || !strings.Contains(err.Error(), "token") ||
				writes.methods != nil || applied.Did != nil {
				t.Errorf("%v, %v, %v", applied, err, writes.methods)
			}
			if strings.Contains(err.Error(), webhookToken) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestTwoWebhooksThatMatchAreLeftToAPerson(t *testing.T) {
	t.Parallel()
	for reason, others := range map[string][]asaastest.Webhook{
		"two of one name":                 {{Name: "shop", URL: "https://a.example/"}, {Name: "shop", URL: "https://b.example/"}},
		"two of one URL":                  {{Name: "a", URL: shopURL}, {Name: "b", URL: shopURL + "/"}},
		"one by its name, one by its URL": {{Name: "shop", URL: "https://a.example/"}, {Name: "b", URL: "https://SHOP.example:443/webhooks/asaas"}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			p := newPlanned(t)
			for n := range 7 { // more than one might look at
				p.fake.AddWebhook(asaastest.Webhook{Name: fmt.Sprint(n), URL: fmt.Sprintf("https://%d.example/", n)})
			}
			for _, w := range others {
				p.fake.AddWebhook(w)
			}
			plan, writes := p.plan(t), p.watchWrites()
			if len(plan.Differences) != 1 || plan.Differences[0].Repairable || !strings.HasPrefix(plan.Differences[0].Text, "2 webhooks have this name or this URL: ") {
				t.Fatalf("planned: %v", plan)
			}
			if _, err := plan.Apply(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "asaas: Apply: nothing was changed: 2 webhooks") || writes.methods != nil {
				t.Errorf("%v, %v", err, writes.methods)
			}
		})
	}
}

func TestATypeThatThisModuleDoesNotKnowIsKept(t *testing.T) {
	t.Parallel()
	p, w := newPlanned(t), wanted()
	w.Events = []asaas.EventType{"PAYMENT_TELEPORTED", asaas.EventPaymentReceived, asaas.EventBillPaid, "NEWS"}
	id := p.fake.AddWebhook(w)
	plan := p.plan(t)
	if diff := cmp.Diff([]asaas.EventType{"PAYMENT_TELEPORTED", "NEWS"}, plan.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if applied, err := plan.Apply(t.Context()); err != nil || len(applied.Left) > 0 {
		t.Errorf("%v, %v", applied, err)
	}
	want := []asaas.EventType{"PAYMENT_TELEPORTED", asaas.EventPaymentReceived, "NEWS", asaas.EventPaymentRefunded}
	if diff := cmp.Diff(want, p.fake.Webhook(id).Events); diff != "" {
		t.Errorf("subscribed to (-want +got):\n%s", diff)
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

func TestAFieldThatAsaasDoesNotTellIsADifference(t *testing.T) {
	t.Parallel()
	client, _ := clientOn(t, scriptedAnswer{status: 200, body: `{"hasMore":false,"data":[{"id":"a","name":"shop"}]}`})
	p := newPlanned(t)
	p.client, p.want.Email = client, ""
	var fields []string
	for _, d := range p.plan(t).Differences {
		if d.Repairable || !d.LosesEvents {
			t.Errorf("%+v", d)
		}
		fields = append(fields, d.Field)
	}
	if diff := cmp.Diff([]string{"enabled", "interrupted", "url", "apiVersion", "hasAuthToken", "sendType", "events"}, fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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

func TestSettingsThatNoWebhookCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		change func(*planned)
		says   string
	}{
		{"no name", func(p *planned) { p.want.Name = " " }, "asaas: PlanWebhook: the settings have no Name"},
		{"no URL", func(p *planned) { p.want.URL = "" }, "asaas: PlanWebhook: the settings have no URL"},
		{"a URL of nothing", func(p *planned) { p.want.URL = "shop.example/asaas" }, "asaas: PlanWebhook: the settings have no URL"},
		{"no order", func(p *planned) { p.want.SendType = "SOMEHOW" }, `asaas: PlanWebhook: there is no SendType "SOMEHOW"`},
		{"no handler", func(p *planned) { p.events = asaas.NewDispatcher() }, "asaas: PlanWebhook: the application handles no event type"},
		{"no dispatcher", func(p *planned) { p.events = nil }, "asaas: PlanWebhook: the application handles no event type"},
		{"a key of nobody", func(p *planned) { p.fake.APIKey = "$aact_hmlg_another" }, "asaas: PlanWebhook: it was answered with 401"},
	} {
		p := newPlanned(t)
		tt.change(p)
		if plan, err := asaas.PlanWebhook(t.Context(), p.client, p.want, p.events); err == nil || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("%s: %v, %v", tt.reason, plan, err)
		}
	}
	p := newPlanned(t)
	p.want.Email = ""
	if _, err := p.plan(t).Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "a new webhook needs an Email") {
		t.Errorf("without an e-mail: %v", err)
	}
}

func TestSettingsShowNoToken(t *testing.T) {
	t.Parallel()
	s := asaas.WebhookSettings{Name: "shop", URL: shopURL + "?key=hidden", Token: webhookToken}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		want := `{Name:"shop" URL:"` + shopURL + `" SendType:SEQUENTIALLY Types:0}`
		if got := fmt.Sprintf(format, s); got != want {
			t.Errorf("%s: %s", format, got)
		}
	}
	if s.LogValue().String() != s.String() {
		t.Error("slog shows more")
	}
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
		err := asaas.RotateToken(t.Context(), p.client, id, token)
		e, ok := errors.AsType[*asaas.APIError](err)
		if !ok || e.Outcome != asaas.CallNotDelivered || writes.methods != nil || strings.TrimSpace(token) != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, %v", reason, err, writes.methods)
		}
	}
	if err := asaas.RotateToken(t.Context(), p.client, id, next); err != nil || p.fake.Webhook(id).Token != next || ran != 0 {
		t.Errorf("%v, the token is %q, handlers ran %d times", err, p.fake.Webhook(id).Token, ran)
	}
	old := p.fake.AddWebhook(asaastest.Webhook{Name: "old", URL: url, APIVersion: 2})
	if err := asaas.RotateToken(t.Context(), p.client, old, next); err == nil || !strings.Contains(err.Error(), "apiVersion 2") {
		t.Errorf("apiVersion 2: %v", err)
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
	if err := asaas.RotateToken(t.Context(), p.client, id, next); err != nil {
		t.Fatal(err)
	}
	p.fake.Emit(asaastest.Event("PAYMENT_REFUNDED"))
	p.fake.Settle()
	if w := p.fake.Webhook(id); w.Pending != 0 || w.Penalized != 0 || handled() != 3 {
		t.Errorf("%d events wait, %d failed, %d are handled", w.Pending, w.Penalized, handled())
	}
}

func update(types ...asaas.EventType) asaas.WebhookUpdate {
	return asaas.WebhookUpdate{Events: optional.Of(types)}
}

// served is an application that verifies with a dispatcher; handled counts its
// events that are done.
func served(t *testing.T, events *asaas.Dispatcher) (url string, handled func() int64) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(idem.NewProcessor(pool, events))
	t.Cleanup(server.Close)
	return server.URL, func() (n int64) {
		if err := pool.QueryRow(context.Background(), `select count(*) from idem_events where state = 'done'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}
