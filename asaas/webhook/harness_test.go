package webhook_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

const webhookToken = "the-token-of-the-webhook-of-a-shop"

// application is a running application, with its database.
func application(t *testing.T, token string, register func(*asaas.Dispatcher)) (url string, pool *pgxpool.Pool) {
	t.Helper()
	pool = idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	register(events)
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	inbox.Logger = slog.New(slog.DiscardHandler)
	server := httptest.NewServer(inbox)
	t.Cleanup(server.Close)
	return server.URL + "/webhooks/asaas?key=secret", pool
}

// scripted is a transport that gives these answers, and counts them.
type scripted struct {
	sent    atomic.Int64
	answers []scriptedAnswer
}

// scriptedAnswer is an answer of the API.
type scriptedAnswer struct {
	status int
	body   string
}

func (s *scripted) RoundTrip(*http.Request) (*http.Response, error) {
	a := s.answers[min(int(s.sent.Add(1))-1, len(s.answers)-1)]
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// arrives is the answer of an application that a canary reaches.
func arrives(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader(`{"received":false,"dry_run":"done"}`))}, nil
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientOn returns a client whose calls are answered so, and whose webhooks' receiver is sound.
func clientOn(t *testing.T, answers ...scriptedAnswer) (*asaas.Client, *scripted) {
	t.Helper()
	client, err := asaas.NewClient(asaas.Production, "$aact_prod_000")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{answers: answers}
	client.Transport, client.Receiver = s, transport(arrives)
	return client, s
}

// looked is the answer of a look.
func looked(interrupted bool, penalized int) scriptedAnswer {
	return scriptedAnswer{status: 200, body: fmt.Sprintf(`{"id":"a","url":"https://shop.example/webhooks/asaas","enabled":true,"interrupted":%t,"penalizedRequestsCount":%d}`, interrupted, penalized)}
}

// outage is a fake Asaas with a webhook whose receiver can be broken.
type outage struct {
	fake   *asaastest.Fake
	id     string
	broken atomic.Bool
	dryRun string // its answer
}

// newOutage has three events fail for a while: an hour is a penalty, a day stops
// the queue.
func newOutage(t *testing.T, d time.Duration) *outage {
	t.Helper()
	o := &outage{fake: asaastest.New(), dryRun: `{"received":false,"dry_run":"done"}`}
	t.Cleanup(o.fake.Close)
	o.id = o.fake.AddWebhook(asaastest.Webhook{Token: webhookToken, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(idem.DryRunHeader) != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, o.dryRun)
		} else if o.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})})
	o.broken.Store(true)
	for range 3 {
		o.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	}
	o.fake.Advance(d)
	return o
}

// changes are what was done to the queue through the API.
func (o *outage) changes() (out []asaastest.Kind) {
	for _, e := range o.fake.Timeline() {
		if e.Kind == asaastest.Resumed || e.Kind == asaastest.BackoffRemoved {
			out = append(out, e.Kind)
		}
	}
	return out
}
