package queue

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

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
		{"a program with its handlers and its webhook", Command{Dispatcher: d, Webhook: asaas.WebhookSettings{Name: "shop", URL: url}}, "", []string{"status"}, 4, "PAYMENT_REFUNDED is handled"},
		{"a program without its handlers", Command{Webhook: asaas.WebhookSettings{Name: "shop", URL: url}}, "", []string{"status"}, 0, "  ok  "},
		{"a program that does not say where its webhook is", Command{Dispatcher: d, Webhook: asaas.WebhookSettings{Name: "shop"}}, "", []string{"status"}, 0, "  ok  "},
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
