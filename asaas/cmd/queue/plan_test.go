package queue

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// listening is an application that verifies with a token, and where it listens.
func listening(t *testing.T, token string) (url string) {
	t.Helper()
	pool := testkit.Open(t)
	server := httptest.NewServer(idem.NewInbox(pool, asaas.NewDispatcher(token)))
	t.Cleanup(server.Close)
	return server.URL + "/webhooks/asaas"
}

func TestPlanAndApplyMakeTheWebhookOfAnApplication(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	file := filepath.Join(t.TempDir(), "types")
	if err := os.WriteFile(file, []byte("PAYMENT_CONFIRMED\nPAYMENT_RECEIVED\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(command string) []string {
		return []string{command, "-name", "shop", "-url", listening(t, token), "-email", "ops@shop.example", "-handled", file}
	}
	plan := as("plan")
	if status, out, complaints := a.queue(t, plan...); status != 4 || !strings.Contains(out, `has no webhook of the name "shop"`) || complaints != "" {
		t.Errorf("plan: exit status %d, prints %q, %q", status, out, complaints)
	}
	apply := slices.Concat([]string{"apply"}, plan[1:])
	if status, _, complaints := a.queue(t, apply...); status != 2 || !strings.Contains(complaints, "give -yes") {
		t.Errorf("apply without a person: exit status %d, %q", status, complaints)
	}
	if status, _, complaints := a.queueAnswering(t, new("n\n"), apply...); status != 1 || !strings.Contains(complaints, "nothing was changed") {
		t.Errorf("apply, declined: exit status %d, %q", status, complaints)
	}
	if status, out, complaints := a.queue(t, append(apply, "-yes")...); status != 0 || !strings.Contains(out, "the webhook was created: 2 event types") {
		t.Errorf("apply: exit status %d, prints %q, %q", status, out, complaints)
	}
	if status, out, _ := a.queue(t, plan...); status != 0 || !strings.Contains(out, "as the application wants it: 2 event types") {
		t.Errorf("plan after apply: exit status %d, prints %q", status, out)
	}
	if types, token := a.only(t); token != "true" || types != "PAYMENT_CONFIRMED PAYMENT_RECEIVED SEQUENTIALLY" {
		t.Errorf("the account has a webhook %s, with a token: %s", types, token)
	}
}

func TestApplyOffersToLeaveOutWhatTheAccountCannotGet(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.fake.NoPixAutomatic = true
	file := filepath.Join(t.TempDir(), "types")
	if err := os.WriteFile(file, []byte("PAYMENT_RECEIVED\nPIX_AUTOMATIC_RECURRING_AUTHORIZATION_CREATED\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := []string{"apply", "-name", "shop", "-url", listening(t, token), "-email", "ops@shop.example", "-handled", file}
	if status, _, complaints := a.queue(t, append(apply, "-yes")...); status != 1 || !strings.Contains(complaints, "PIX_AUTOMATIC_RECURRING_AUTHORIZATION_CREATED") ||
		!strings.Contains(complaints, "-no-pix-automatic") {
		t.Errorf("apply -yes: exit status %d, %q", status, complaints)
	}
	if status, out, complaints := a.queueAnswering(t, new("y\nn\n"), apply...); status != 1 || !strings.Contains(complaints, "without these types?") ||
		!strings.Contains(out, "left out, and never delivered: PIX_AUTOMATIC_RECURRING_AUTHORIZATION_CREATED") {
		t.Errorf("apply, declined: exit status %d, %q, %q", status, out, complaints) // the plan is shown before the question
	}
	if status, out, complaints := a.queueAnswering(t, new("y\ny\n"), apply...); status != 0 || !strings.Contains(out, "left out, and never delivered: PIX_AUTOMATIC_RECURRING_AUTHORIZATION_CREATED") {
		t.Errorf("apply: exit status %d, %q, %q", status, out, complaints)
	}
	if types, _ := a.only(t); types != "PAYMENT_RECEIVED SEQUENTIALLY" {
		t.Errorf("the webhook gets %s", types)
	}
	if status, _, complaints := a.queue(t, append([]string{"plan", "-no-pix-automatic"}, apply[1:]...)...); status != 0 {
		t.Errorf("plan: exit status %d, %q", status, complaints)
	}
}

// only describes the account's only webhook.
func (a *account) only(t *testing.T) (says, hasToken string) {
	t.Helper()
	for w, err := range a.fake.Client().Webhooks(t.Context()) {
		if err != nil || says != "" {
			t.Fatalf("there is another webhook, %v", err)
		}
		for _, e := range w.Events.Or(nil) {
			says += string(e) + " "
		}
		says += string(w.SendType.Or(""))
		hasToken = fmt.Sprint(w.HasAuthToken.Or(false))
	}
	return says, hasToken
}

func TestPlanComparesWithTheHandlersOfTheProgram(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const url = "https://shop.example/webhooks/asaas"
	id := a.fake.AddWebhook(asaastest.Webhook{Name: "fine", URL: url, Token: token, Events: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentOverdue}})
	d := asaas.NewDispatcher(token)
	handler := func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	d.OnPaymentReceived(handler)
	d.OnPaymentRefunded(handler)
	p, out, complaints := a.program(nil)
	p.Dispatcher, p.Webhook = d, webhook.Settings{Name: "fine", URL: url}
	if status := p.run(t.Context(), []string{"-sandbox", "-json", "plan"}); status != 4 || complaints.Len() != 0 {
		t.Errorf("exit status %d, prints %q, %q", status, out, complaints)
	}
	for _, want := range []string{id, "PAYMENT_REFUNDED", "PAYMENT_OVERDUE"} { // not subscribed to, and not handled
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "PAYMENT_RECEIVED") {
			t.Errorf("it prints %q, want %s", out, want)
		}
	}
}

func TestApplySendsNoTokenThatTheReceiverRefuses(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	handled := "PAYMENT_RECEIVED"
	status, _, complaints := a.queueAnswering(t, &handled, "apply", "-yes", "-name", "shop", "-url", listening(t, "another token of thirty-two letters"),
		"-email", "ops@shop.example", "-handled", "-")
	if status != 1 || !strings.HasPrefix(complaints, "asaas-queue: nothing was changed: the receiver at ") || !strings.Contains(complaints, "does not accept the token") {
		t.Errorf("exit status %d, %q", status, complaints)
	}
	if webhook, _ := a.only(t); webhook != "" {
		t.Errorf("the account has a webhook %s", webhook)
	}
}

func TestPlanSaysWhichFlagIsMissing(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for missing, args := range map[string][]string{
		"-name":    {"plan", "-url", "https://shop.example"},
		"-url":     {"plan", "-name", "shop"},
		"-handled": {"plan", "-name", "shop", "-url", "https://shop.example"},
	} {
		if status, _, complaints := a.queue(t, args...); status != 2 || !strings.Contains(complaints, missing+" is not given") {
			t.Errorf("%v: exit status %d, %q", args, status, complaints)
		}
	}
}

// printedBy are the event types of a dispatcher, in the ways to print them.
func printedBy(d *asaas.Dispatcher) map[string]string {
	return map[string]string{
		"one per line":  strings.Join(d.Routes.Types(), "\n") + "\n",
		"fmt":           fmt.Sprintln(d.Routes.Types()),
		"JSON":          fmt.Sprintf("%q", d.Routes.Types()),
		"from Windows":  strings.Join(d.Routes.Types(), "\r\n"),
		"with repeats":  strings.Repeat(strings.Join(d.Routes.Types(), " ")+" ", 2),
		"JSON, a comma": `["PAYMENT_RECEIVED","PAYMENT_REFUNDED"]`,
	}
}

func TestHandledTypesAreReadAsAProgramPrintsThem(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	d := asaas.NewDispatcher()
	ignore := func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	d.OnPaymentReceived(ignore)
	d.OnPaymentRefunded(ignore)
	a.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: "https://shop.example", Token: token, Events: []asaas.EventType{asaas.EventPaymentReceived}})
	plan := []string{"plan", "-name=shop", "-url=https://shop.example", "-handled"}
	for way, text := range printedBy(d) {
		file := filepath.Join(t.TempDir(), "types")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, complaints := a.queue(t, append(plan, file)...)
		_, fromStdin, _ := a.queueAnswering(t, &text, append(plan, "-")...)
		says := "\n  - PAYMENT_REFUNDED is handled and not subscribed to: it never comes (apply repairs it)\n"
		if status != 4 || complaints != "" || fromStdin != out || !strings.HasSuffix(out, says) || strings.Count(out, "\n") != 2 {
			t.Errorf("%s: exit status %d, prints %q, %q from stdin, %q", way, status, out, fromStdin, complaints)
		}
	}
	for text, says := range map[string]string{
		"":                             "there is no event type in it",
		"[]\n":                         "there is no event type in it",
		"PAYMENT_RECEIVED\npayment ok": `"payment" is no event type such as PAYMENT_RECEIVED`,
	} {
		if status, out, complaints := a.queueAnswering(t, &text, append(plan, "-")...); status != 2 || out != "" || !strings.Contains(complaints, says) {
			t.Errorf("%q: exit status %d, %q, %q", text, status, out, complaints)
		}
	}
	if status, _, complaints := a.queue(t, append(plan, "no such file")...); status != 2 || !strings.Contains(complaints, "no such file") {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

func TestRotateGivesATokenThatTheApplicationAccepts(t *testing.T) {
	t.Parallel()
	const next = "the-next-token-of-the-shop-and-its-branches"
	for _, test := range []struct {
		why, accepted, env string
		args               []string
		status             int
		says               string
		token              string // that Asaas sends in the end
	}{
		{"accepted", next, next, []string{"-yes"}, 0, "the webhook has the new token", next},
		{"with the line break of a file", next, next + "\n", []string{"-yes"}, 0, "the webhook has the new token", next},
		{"as JSON", next, next, []string{"-yes", "-json"}, 0, `"next":"the webhook has the new token`, next},
		{"the application does not accept it yet", token, next, []string{"-yes"}, 1, "does not accept the token", token},
		{"none in the environment", next, " ", []string{"-yes"}, 2, "ASAAS_NEW_WEBHOOK_TOKEN is not set", token},
		{"nobody to ask", next, next, nil, 2, "give -yes", token},
	} {
		a := newAccount(t)
		a.env["ASAAS_NEW_WEBHOOK_TOKEN"] = test.env
		id := a.fake.AddWebhook(asaastest.Webhook{URL: listening(t, test.accepted), Token: token})
		status, out, complaints := a.queue(t, append([]string{"rotate", id}, test.args...)...)
		if status != test.status || !strings.Contains(out+complaints, test.says) || strings.Contains(out+complaints, next) {
			t.Errorf("%s: exit status %d, prints %q, %q", test.why, status, out, complaints)
		}
		if got := a.fake.Webhook(id).Token; got != test.token {
			t.Errorf("%s: Asaas sends %q in the end", test.why, got)
		}
	}
	a := newAccount(t)
	a.env["ASAAS_NEW_WEBHOOK_TOKEN"] = next
	id := a.fake.AddWebhook(asaastest.Webhook{URL: listening(t, next), Token: token})
	if status, _, complaints := a.queueAnswering(t, new("n\n"), "rotate", id); status != 1 || !strings.Contains(complaints, "Give it the new token") || a.fake.Webhook(id).Token != token {
		t.Errorf("declined: exit status %d, %q", status, complaints)
	}
}

func TestStatusSaysWhatNeverComes(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const url = "https://shop.example/webhooks/asaas"
	a.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: url, Token: token, Events: []asaas.EventType{asaas.EventPaymentReceived}})
	d := asaas.NewDispatcher(token)
	handler := func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }
	d.OnPaymentReceived(handler)
	d.OnPaymentRefunded(handler)
	flags := []string{"status", "-name", "shop", "-url", url, "-handled", "-"}
	for _, test := range []struct {
		why     string
		program Command
		handled string
		args    []string
		status  int
		says    string
	}{
		{"all is subscribed to", Command{}, "PAYMENT_RECEIVED", flags, 0, "  ok  "},
		{"a type is not", Command{}, "PAYMENT_RECEIVED\nPAYMENT_REFUNDED", flags, 4, "PAYMENT_REFUNDED is handled and not subscribed to: it never comes"},
		{"as JSON", Command{}, "PAYMENT_RECEIVED\nPAYMENT_REFUNDED", append(flags, "-json"), 4, `"differences":[`},
		{"a program with its handlers and its webhook", Command{Dispatcher: d, Webhook: webhook.Settings{Name: "shop", URL: url}}, "", []string{"status"}, 4, "PAYMENT_REFUNDED is handled"},
		{"a program without its handlers", Command{Webhook: webhook.Settings{Name: "shop", URL: url}}, "", []string{"status"}, 0, "  ok  "},
		{"a program that does not say where its webhook is", Command{Dispatcher: d, Webhook: webhook.Settings{Name: "shop"}}, "", []string{"status"}, 0, "  ok  "},
	} {
		p, out, complaints := a.program(&test.handled)
		p.Command = test.program
		status := p.run(t.Context(), append([]string{"-sandbox"}, test.args...))
		want := string(owedUnknown) + "\n"
		if p.json {
			want = ""
		}
		if status != test.status || !strings.Contains(out.String(), test.says) || complaints.String() != want {
			t.Errorf("%s: exit status %d, prints %q, %q", test.why, status, out, complaints)
		}
	}
}

func TestTheCommandOfAWatchRepairsAsTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		change func(*asaastest.Webhook) // nil: there is none
	}{
		{"disabled", func(w *asaastest.Webhook) { w.Disabled = true }},
		{"stopped", func(w *asaastest.Webhook) { w.Interrupted = true }},
		{"disabled, and stopped before", func(w *asaastest.Webhook) { w.Disabled, w.Interrupted = true, true }},
		{"a type is not subscribed", func(w *asaastest.Webhook) { w.Events = w.Events[:1] }},
		{"in no order", func(w *asaastest.Webhook) { w.SendType = asaastest.NonSequentially }},
		{"without a token", func(w *asaastest.Webhook) { w.Token = "" }},
		{"elsewhere", func(w *asaastest.Webhook) { w.URL = "https://old.example/webhooks/asaas" }},
		{"deleted", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.wait = func(context.Context, time.Duration) error { return nil }
			url := listening(t, token)
			if c.change != nil {
				w := asaastest.Webhook{Name: "shop", URL: url, Token: token, Events: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}}
				c.change(&w)
				a.fake.AddWebhook(w)
			}
			watch := webhook.NewWatch(a.fake.Client(), webhook.Settings{Name: "shop", URL: url, Types: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded}}, nil)
			typed := func() string {
				problems, typed, err := watch.Problems(t.Context())
				if err != nil || (len(problems) == 0) != (typed == "") {
					t.Fatalf("%q: %q, %v", problems, typed, err)
				}
				return typed
			}
			commands := 0
			for command := typed(); command != "" && commands < 3; command = typed() {
				command = strings.NewReplacer("'", "", "ADDRESS", "ops@shop.example").Replace(command)
				status, _, complaints := a.queue(t, append(strings.Fields(command)[1:], "-yes")...)
				if status != 0 {
					t.Fatalf("%s: exit status %d, %q", command, status, complaints)
				}
				commands++
			}
			if commands == 0 || commands > 2 {
				t.Errorf("%d commands were typed", commands)
			}
		})
	}
}
