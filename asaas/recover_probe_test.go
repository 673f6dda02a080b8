package asaas_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/optional"
)

const webhookToken = "the-token-of-the-webhook-of-a-shop"

// webhookAt is a webhook whose events go to a URL.
func webhookAt(url string, types ...asaas.EventType) *asaas.Webhook {
	return &asaas.Webhook{ID: webhookID, URL: optional.Of(url), Events: optional.Of(types)}
}

// application is a running application, with its database.
func application(t *testing.T, token string, register func(*asaas.Dispatcher)) (url string, pool *pgxpool.Pool) {
	t.Helper()
	pool = idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table payments (id text primary key, value numeric not null)`); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	register(events)
	processor := idem.NewProcessor(pool, events)
	processor.Logger = slog.New(slog.DiscardHandler)
	server := httptest.NewServer(processor)
	t.Cleanup(server.Close)
	return server.URL + "/webhooks/asaas?key=secret", pool
}

func savePayment(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into payments values ($1, $2)`, e.Payment.ID, e.Payment.Value)
	return err
}

func isEmpty(t *testing.T, pool *pgxpool.Pool) bool {
	t.Helper()
	var n int
	err := pool.QueryRow(t.Context(), `select (select count(*) from payments) + (select count(*) from idem_events) + (select count(*) from idem_payloads where source <> '')`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n == 0
}

func TestADryRunTriesEveryEventTypeThatIsHandledAndLeavesNothing(t *testing.T) {
	t.Parallel()
	var ran []asaas.EventType
	url, pool := application(t, webhookToken, func(events *asaas.Dispatcher) {
		events.Ignore(asaas.EventPaymentCreated)
		tried := func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
			ran = append(ran, e.Event)
			if !idem.IsDryRun(ctx) || e.Payment.ID != "pay_0_dryRunDryRun00" {
				t.Errorf("the handler got %+v", e.Payment)
			}
			return savePayment(ctx, tx, e)
		}
		events.OnPaymentReceived(tried)
		events.OnPaymentConfirmed(tried)
		idem.Handle(&events.Routes, "PAYMENT_TELEPORTED", tried) // newer than this module
	})
	w := webhookAt(url, "PAYMENT_TELEPORTED", "NEW", asaas.EventPaymentOverdue, asaas.EventPaymentCreated,
		asaas.EventPaymentConfirmed, asaas.EventPaymentReceived, asaas.EventPaymentRefunded)
	if err := asaas.DryRunProbe(webhookToken)(t.Context(), w); err != nil || !isEmpty(t, pool) {
		t.Error(err)
	}
	if diff := cmp.Diff([]asaas.EventType{"PAYMENT_TELEPORTED", asaas.EventPaymentConfirmed, asaas.EventPaymentReceived}, ran); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With PAYMENT_CONFIRMED sound and PAYMENT_RECEIVED broken the queue was started.
func TestADryRunFailsIfAnyHandlerFails(t *testing.T) {
	t.Parallel()
	url, _ := application(t, webhookToken, func(events *asaas.Dispatcher) {
		events.OnPaymentConfirmed(savePayment)
		events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("a mistake") })
	})
	w := webhookAt(url, asaas.EventPaymentConfirmed, asaas.EventPaymentReceived)
	err := asaas.DryRunProbe(webhookToken)(t.Context(), w)
	if err == nil || !strings.HasPrefix(err.Error(), "dry run of PAYMENT_RECEIVED at ") {
		t.Errorf("got the error %v", err)
	}
}

func TestADryRunTellsWhatIsWrongWithAnApplication(t *testing.T) {
	t.Parallel()
	healthy := func(events *asaas.Dispatcher) { events.OnPaymentReceived(savePayment) }
	for _, tt := range []struct {
		reason   string
		register func(*asaas.Dispatcher)
		setUp    string // SQL
		token    string // of the application
		says     string
	}{
		{
			"the handler fails",
			func(events *asaas.Dispatcher) {
				events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("a mistake") })
			},
			"", webhookToken, "dry run of PAYMENT_RECEIVED at http://127.0.0.1:PORT/webhooks/asaas: the handler failed, or its database: the application's log has the error",
		},
		{"a table is missing", healthy, `drop table payments`, webhookToken, "the handler failed, or its database"},
		{"the tables of idem are missing", healthy, `drop table idem_events cascade`, webhookToken, "the handler failed, or its database"},
		{"nothing is handled", func(*asaas.Dispatcher) {}, "", webhookToken, "the application handles none of the 1 event types that the webhook subscribes to"},
		{"another token", healthy, "", "another-token", "the application refused it with 401 (wrong_token): give the token that the application verifies with"},
		{
			"it takes events from Asaas only",
			func(events *asaas.Dispatcher) { healthy(events); events.AllowFrom = asaas.OfficialAddresses() },
			"", webhookToken, "(address_not_allowed): the application takes events from Asaas's addresses only",
		},
		{"the application has no token", healthy, "", "", "the application refused it with 503 (not_configured): the application has no token to verify with"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			url, pool := application(t, tt.token, tt.register)
			if _, err := pool.Exec(t.Context(), tt.setUp); err != nil {
				t.Fatal(err)
			}
			err := asaas.DryRunProbe(webhookToken)(t.Context(), webhookAt(url, asaas.EventPaymentReceived))
			if err == nil || !strings.Contains(withoutPort(err), tt.says) || strings.Contains(err.Error(), webhookToken) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got the error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

func withoutPort(err error) string {
	before, after, ok := strings.Cut(err.Error(), "127.0.0.1:")
	if !ok {
		return before
	}
	return before + "127.0.0.1:PORT" + strings.TrimLeft(after, "0123456789")
}

func TestADryRunIsNotFooledByOtherAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		status int
		body   string
		says   string
	}{
		{"another receiver took it", 200, "ok", "it was answered with 200, as a real event: it may have been processed, look for the ids evt_dry_run_… and pay_0_dryRunDryRun00"},
		{"a proxy dropped the header", 200, `{"received":true}`, "as a real event: it may have been processed"},
		{"no provider takes it for success, but a dry run is 503", 200, `{"received":false,"dry_run":"handled"}`, "as a real event"},
		{"nothing to say", 204, "", "it was answered with 204, as a real event"},
		{"a page of the shop", 200, "\n<!doctype html><html>", "it was answered with 200 and a page of HTML: a proxy or another application"},
		{"a gateway", 502, "<html>", "it was answered with 502 and a page of HTML"},
		{"a gateway that speaks JSON", 502, `{"message":"bad gateway"}`, "it was answered with 502: no receiver of paghooks answers so"},
		{"no such route", 404, `404 page not found`, "it was answered with 404: nothing takes events there: compare the webhook's URL"},
		{"a route for GET", 405, ``, "it was answered with 405: nothing takes events there"},
		{"a firewall", 403, `denied`, "a firewall or a proxy refuses it"},
		{"another receiver's refusal", 401, `unauthorized`, "it was answered with 401: the token is not taken"},
		{"accounts cannot be looked up", 503, `{"received":false}`, "it was answered with 503: the application takes no events now: see its log"},
		{"moved", 308, ``, "the redirect 308, which Asaas does not follow"},
		{"does not decode", 503, `{"received":false,"dry_run":"parked"}`, "does not decode in the application"},
		{"newer", 503, `{"received":false,"dry_run":"pondered"}`, "the receiver is newer than this program"},
		{"it echoes the token", 401, `{"reason":"no such token: ` + webhookToken + `"}`, "refused it with 401 (no such token: [redacted])"},
		{"no JSON of ours", 503, `[1]`, "takes no events now"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					t.Error("the redirect is followed")
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			err := asaas.DryRunProbe(webhookToken)(t.Context(), webhookAt(server.URL, asaas.EventPaymentReceived, asaas.EventPaymentOverdue))
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), webhookToken) {
				t.Errorf("got the error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

func TestADryRunTellsWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	strange := httptest.NewUnstartedServer(nil)
	strange.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	strange.StartTLS() // of an authority that nobody knows
	defer strange.Close()
	for url, says := range map[string]string{
		gone.URL:    "there is no answer: see whether the application runs",
		strange.URL: "certificate",
	} {
		if err := asaas.DryRunProbe(webhookToken)(t.Context(), webhookAt(url, asaas.EventPaymentReceived)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got the error %v, want one that says %q", err, says)
		}
	}
}

func TestADryRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(errors.New("enough")) }()
	err := asaas.DryRunProbe(webhookToken)(ctx, webhookAt(server.URL, asaas.EventPaymentReceived))
	if err == nil || !strings.HasSuffix(err.Error(), "it was interrupted: enough") {
		t.Errorf("got the error %v", err)
	}
}

// What a probe would not notice, because it sends the token by itself.
func TestADryRunRefusesWebhooksWhoseDeliveriesMustFail(t *testing.T) {
	t.Parallel()
	const url = "https://shop.example/webhooks/asaas"
	old, bare := webhookAt(url, asaas.EventPaymentReceived), webhookAt(url, asaas.EventPaymentReceived)
	old.APIVersion = optional.Of(asaas.Int(2))
	bare.HasAuthToken = optional.Of(false)
	for _, tt := range []struct {
		reason, token string
		webhook       *asaas.Webhook
		says          string
	}{
		{"an unset variable", "", webhookAt(url, asaas.EventPaymentReceived), "the webhook's token is empty"},
		{"apiVersion 2", webhookToken, old, "carry no token: make a new webhook with apiVersion 3"},
		{"no token at Asaas", webhookToken, bare, "set one at Asaas, or through its API"},
		{"no URL", webhookToken, webhookAt("", asaas.EventPaymentReceived), "not one that events can be sent to"},
		{"no host", webhookToken, webhookAt("shop.example/asaas", asaas.EventPaymentReceived), "not one that events can be sent to"},
		{"no events", webhookToken, webhookAt(url), "subscribes to no event type: subscribe to those"},
	} {
		err := asaas.DryRunProbe(tt.token)(t.Context(), tt.webhook)
		if err == nil || !strings.HasPrefix(err.Error(), "dry run: ") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got the error %v, want one that says %q", tt.reason, err, tt.says)
		}
	}
}

func TestTheEventsOfADryRunHaveWhatAsaasAlwaysSends(t *testing.T) {
	t.Parallel()
	bodies := make(map[asaas.EventType][]byte)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = asaas.Verify(r.Header, body, webhookToken)
		}
		if err != nil || r.Method != http.MethodPost || r.Header.Get(idem.DryRunHeader) == "" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %v: %v", r.Method, r.Header, err)
		}
		bodies[asaas.EventType(asaas.Identify(body).Type)] = body
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"received":false,"dry_run":"unhandled"}`)
	}))
	defer server.Close()
	if err := asaas.DryRunProbe(webhookToken)(t.Context(), webhookAt(server.URL, asaastest.Types()...)); err == nil {
		t.Error("it passes, though nothing is handled")
	}
	ids := make(map[string]bool)
	for _, eventType := range asaastest.Types() {
		e, sparse := asaas.Identify(bodies[eventType]), asaas.Identify(asaastest.Sparse(eventType))
		if !strings.HasPrefix(e.ID, "evt_dry_run_") || ids[e.ID] || (e.Key == "") != (sparse.Key == "") || e.OccurredAt.IsZero() {
			t.Errorf("%s: the event is %+v", eventType, e)
		}
		ids[e.ID] = true
		sent, always := filled(t, bodies[eventType]), filled(t, sparse.Payload)
		if diff := cmp.Diff(always, sent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", eventType, diff)
		}
	}
}

// filled are the paths of what has a value, and is not empty.
func filled(t *testing.T, body []byte) []string {
	t.Helper()
	var root any
	if err := json.Unmarshal(body, &root); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for name, value := range node {
				walk(path+"."+name, value)
			}
		case nil:
		default:
			if node != "" && node != 0.0 {
				out = append(out, path)
			}
		}
	}
	walk("", root)
	slices.Sort(out)
	return out
}

// As the file of a secret often ends.
func TestATokenWithALineBreakIsNamed(t *testing.T) {
	t.Parallel()
	w := &asaas.Webhook{ID: "a", URL: optional.Of("http://receiver.example/webhooks"), Events: optional.Of([]asaas.EventType{asaas.EventPaymentReceived})}
	err := asaas.DryRunProbe(webhookToken+"\n")(t.Context(), w)
	if err == nil || !strings.Contains(err.Error(), "the token has a line break") || strings.Contains(err.Error(), webhookToken) {
		t.Errorf("the error is %v", err)
	}
}
