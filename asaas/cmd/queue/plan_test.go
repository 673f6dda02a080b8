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

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// listening is an application that verifies with a token, and where it listens.
func listening(t *testing.T, token string) (url string) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
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
	p.Dispatcher, p.Webhook = d, asaas.WebhookSettings{Name: "fine", URL: url}
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
