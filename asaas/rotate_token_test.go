package asaas_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

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

// The webhook has the new token: an outcome that says otherwise would have a person end it.
func TestAReadThatFailsAfterTheTokenChangedDoesNotDenyTheChange(t *testing.T) {
	t.Parallel()
	const next = "the-next-token-of-the-webhook-of-the-test"
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		p := newPlanned(t)
		url, _ := application(t, next, handleTwo)
		id := p.fake.AddWebhook(asaastest.Webhook{Name: "shop", URL: url, Token: webhookToken})
		p.fake.InjectAPI(nil, nil, asaastest.APIStatus(status)) // it is read, changed, and read
		err := asaas.RotateToken(t.Context(), p.client, id, next)
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
	if err := asaas.RotateToken(t.Context(), p.client, id, next); err != nil {
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
