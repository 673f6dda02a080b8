package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
)

// planned is an account at a fake Asaas over HTTP, and an application for its
// webhook.
type planned struct {
	fake   *asaastest.Fake
	client *asaas.Client
	want   webhook.Settings
	events *asaas.Dispatcher
}

const shopURL = "https://shop.example/webhooks/asaas"

func newPlanned(t *testing.T) *planned {
	t.Helper()
	p := &planned{
		fake:   asaastest.NewServer(),
		want:   webhook.Settings{Name: "shop", URL: shopURL, Email: "ops@shop.example", Token: webhookToken},
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

func (p *planned) plan(t *testing.T) *webhook.Plan {
	t.Helper()
	plan, err := webhook.NewPlan(t.Context(), p.client, p.want, p.events)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", plan, plan, plan), webhookToken) {
		t.Errorf("the plan shows the token: %v", plan)
	}
	return plan
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
			if _, err := plan.Apply(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "webhook: Apply: nothing was changed: 2 webhooks") || writes.methods != nil {
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

func TestSettingsThatNoWebhookCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		change func(*planned)
		says   string
	}{
		{"no name", func(p *planned) { p.want.Name = " " }, "webhook: NewPlan: the settings have no Name"},
		{"no URL", func(p *planned) { p.want.URL = "" }, "webhook: NewPlan: the settings have no URL"},
		{"a URL of nothing", func(p *planned) { p.want.URL = "shop.example/asaas" }, "webhook: NewPlan: the settings have no URL"},
		{"no order", func(p *planned) { p.want.SendType = "SOMEHOW" }, `webhook: NewPlan: there is no SendType "SOMEHOW"`},
		{"no handler", func(p *planned) { p.events = asaas.NewDispatcher() }, "webhook: NewPlan: the application handles no event type"},
		{"no dispatcher", func(p *planned) { p.events = nil }, "webhook: NewPlan: the application handles no event type"},
		{"a key of nobody", func(p *planned) { p.fake.APIKey = "$aact_hmlg_another" }, "asaas: Webhooks: it was answered with 401"},
	} {
		p := newPlanned(t)
		tt.change(p)
		if plan, err := webhook.NewPlan(t.Context(), p.client, p.want, p.events); err == nil || !strings.HasPrefix(err.Error(), tt.says) {
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
	s := webhook.Settings{Name: "shop", URL: shopURL + "?key=hidden", Token: webhookToken}
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
