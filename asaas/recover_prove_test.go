package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/canary"
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

// proved runs Recover for a webhook at url that has a penalty, until it is proved whether its events
// arrive. A change of the queue is an error of the test.
func proved(t *testing.T, url, token string, also ...string) (p asaas.RecoveryProgress, err error) {
	t.Helper()
	fields := []string{fmt.Sprintf(`"id":"a","interrupted":false,"penalizedRequestsCount":3,"url":%q`, url)}
	client, s := clientOn(t, scriptedAnswer{status: 200, body: "{" + strings.Join(append(fields, also...), ",") + "}"})
	client.Receiver = nil
	for p, err = range asaas.Recover(t.Context(), client, "a", token, nil) {
		break
	}
	if s.sent.Load() != 1 || err != nil && !strings.HasPrefix(err.Error(), "asaas: Recover(a): nothing was changed: ") {
		t.Errorf("%d requests, %v", s.sent.Load(), err)
	}
	return p, err
}

func TestACanaryProvesTheWayAndRunsNoHandler(t *testing.T) {
	t.Parallel()
	url, pool := application(t, webhookToken, func(events *asaas.Dispatcher) {
		events.OnUnknown(func(context.Context, pgx.Tx, *asaas.UnknownEvent) error { t.Error("a handler ran"); return nil })
	})
	if p, err := proved(t, url, webhookToken); err != nil || p.String() != "the way is proved, handlers were not tried" {
		t.Errorf("got %s, %v", p, err)
	}
	var events int
	if err := pool.QueryRow(t.Context(), `select count(*) from idem_events`).Scan(&events); err != nil || events != 0 {
		t.Errorf("%d events are stored, %v", events, err)
	}
}

func TestRecoverTellsWhatIsWrongWithAnApplication(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason   string
		register func(*asaas.Dispatcher)
		setUp    string // SQL
		token    string // of the application
		says     string
	}{
		{"the tables of idem are missing", nil, `drop table idem_events cascade`, webhookToken, "the application was reached, and could not write to Postgres"},
		{"another token", nil, "", "another-token", "the application refused it with 401 (wrong_token): give the canary the token"},
		{"it takes events from Asaas only", func(events *asaas.Dispatcher) { events.AllowFrom = asaas.OfficialAddresses() }, "", webhookToken, "(address_not_allowed)"},
		{"the application has no token", nil, "", "", "the application has no token or secret to verify with"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			url, pool := application(t, tt.token, func(events *asaas.Dispatcher) {
				if tt.register != nil {
					tt.register(events)
				}
			})
			if _, err := pool.Exec(t.Context(), tt.setUp); err != nil {
				t.Fatal(err)
			}
			_, err := proved(t, url, webhookToken)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "the way to http://127.0.0.1:") ||
				strings.Contains(err.Error(), webhookToken) || strings.Contains(err.Error(), "secret,") || strings.Contains(err.Error(), "key=") {
				t.Errorf("got the error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

func TestRecoverIsNotFooledByOtherAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		status int
		body   string
		says   string // "" if it is proved
	}{
		{"another receiver took it", 200, "ok", "it was answered with 200, as a real event"},
		{"a proxy dropped the header", 200, `{"received":true}`, "a proxy drops the header Idem-Dry-Run"},
		{"no provider takes it for success, but a dry run is 503", 200, `{"received":false,"dry_run":"done"}`, "as a real event"},
		{"a page of the shop", 200, "\n<!doctype html><html>", "it was answered with 200 and a page of HTML"},
		{"a gateway", 502, "<html>", "it was answered with 502 and a page of HTML"},
		{"no such route", 404, `404 page not found`, "it was answered with 404, as no receiver of paghooks does"},
		{"accounts cannot be looked up", 503, `{"received":false}`, "it was answered with 503"},
		{"moved", 308, ``, "the redirect 308"},
		{"newer", 503, `{"received":false,"dry_run":"pondered"}`, "run the same version of paghooks"},
		{"it echoes the token", 401, `{"reason":"no such token: ` + webhookToken + `"}`, "refused it with 401"},
		{"no JSON of ours", 503, `[1]`, "it was answered with 503"},
		{"a relay, which has verified it", 503, `{"received":false,"dry_run":"published"}`, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					err = asaas.Verify(r.Header, body, webhookToken)
				}
				if err != nil || r.Method != http.MethodPost || r.Header.Get(idem.DryRunHeader) == "" || asaas.Identify(body).Type != canary.EventType {
					t.Errorf("got %s %s, %v", r.Method, r.URL, err)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			_, err := proved(t, server.URL, webhookToken)
			if (err == nil) != (tt.says == "") || err != nil && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), webhookToken)) {
				t.Errorf("got the error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

// What a canary would not notice, because it sends the token by itself.
func TestRecoverRefusesWebhooksWhoseDeliveriesMustFail(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct{ reason, url, token, also, says string }{
		{"an unset variable", gone.URL, "", "", "the webhook's token is empty"},
		{"a file's last line", gone.URL, webhookToken + "\n", "", "or has a line break"},
		{"apiVersion 2", gone.URL, webhookToken, `"apiVersion":2`, "carry no token: make a new webhook with apiVersion 3"},
		{"no token at Asaas", gone.URL, webhookToken, `"hasAuthToken":false`, "set one at Asaas, or through its API"},
		{"no URL", "", webhookToken, "", "the address of asaas is empty"},
		{"no host", "shop.example/asaas", webhookToken, "", "not one that events can be sent to"},
		{"nobody is there", gone.URL, webhookToken, "", "there was no answer: see whether the application runs"},
	} {
		also := []string{tt.also}
		if tt.also == "" {
			also = nil
		}
		_, err := proved(t, tt.url, tt.token, also...)
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), webhookToken) {
			t.Errorf("%s: got the error %v, want one that says %q", tt.reason, err, tt.says)
		}
	}
}

// Handlers may call real systems in a dry run, so that a person decides, who is told the event.
func TestHandlersAreTriedWithTheOldestFailedEventIfSomebodySaysSo(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var tried []string
	events := asaas.NewDispatcher(webhookToken)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		if idem.IsDryRun(ctx) {
			tried = append(tried, e.Payment.ID)
		}
		if _, err := tx.Exec(ctx, `update orders set paid = paid + 1 where charge = $1`, e.Payment.ID); err != nil {
			return err
		}
		if s.broken.Load() {
			return errBroken
		}
		return nil
	})
	inbox := idem.NewInbox(s.pool, events)
	inbox.Logger, inbox.MaxAttempts = slog.New(slog.DiscardHandler), 1
	webhook := s.asaas.AddWebhook(asaastest.Webhook{Handler: inbox, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentReceived}})
	s.broken.Store(true)
	s.sell(t, 1)
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	inbox.WorkFirst = true // and no workers: it answers 503
	s.sell(t, 1)
	oldest, client := charge(1), s.asaas.Client()
	name := ""
	for e, err := range inbox.List(t.Context(), idem.Filter{States: []idem.State{idem.StateParked}}) {
		if err != nil {
			t.Fatal(err)
		}
		name = "PAYMENT_RECEIVED " + e.ID + " of " + oldest
		break
	}
	yes := func(_ context.Context, e idem.StoredEvent) bool {
		if e.Key != oldest || e.State != idem.StateParked {
			t.Errorf("it is asked about %v", e)
		}
		return true
	}
	no := func(context.Context, idem.StoredEvent) bool { return false }
	for _, tt := range []struct {
		reason string
		try    func(context.Context, idem.StoredEvent) bool
		broken bool
		runs   []string
		says   string
	}{
		{"nobody says anything", nil, true, nil, "the way is proved, handlers were not tried: the oldest event that failed is " + name},
		{"a person says no", no, true, nil, "the way is proved, handlers were not tried: the oldest event that failed is " + name},
		{"they fail", yes, true, []string{oldest}, "asaas: Recover(" + webhook + "): nothing was changed: the handlers fail with " + name + ": the application's log has the error of the dry run"},
		{"they are fixed", yes, false, []string{oldest}, "the way is proved, and the handlers passed with the oldest event that failed, " + name},
	} {
		s.broken.Store(tt.broken)
		tried, client.Try = nil, tt.try
		said := ""
		for p, err := range asaas.Recover(t.Context(), client, webhook, webhookToken, inbox) {
			if said = p.String(); err != nil {
				said = err.Error()
			}
			break
		}
		if diff := cmp.Diff(tt.runs, tried); said != tt.says || diff != "" || s.unpaid(t) != 2 {
			t.Errorf("%s: it says %q, want %q; %d orders are unpaid; tried (-want +got):\n%s", tt.reason, said, tt.says, s.unpaid(t), diff)
		}
	}
}

// failed is a store of events, by their state.
type failed map[idem.State][]idem.Event

func (f failed) List(_ context.Context, filter idem.Filter) iter.Seq2[idem.StoredEvent, error] {
	return func(yield func(idem.StoredEvent, error) bool) {
		for _, state := range filter.States {
			for _, e := range f[state] {
				if !yield(idem.StoredEvent{Event: e, State: state}, nil) {
					return
				}
			}
		}
	}
}

func (failed) Replay(context.Context, idem.Filter) (idem.Replayed, error) {
	return idem.Replayed{}, nil
}

func (failed) SilentSince(context.Context, time.Duration) (time.Time, error) { return time.Time{}, nil }

func TestTheOldestParkedEventIsTriedBeforeTheQueueIsResumed(t *testing.T) {
	t.Parallel()
	at := func(id string, hour int) idem.Event {
		return idem.Event{ID: id, Type: "PAYMENT_RECEIVED", OccurredAt: time.Date(2026, 11, 24, hour, 0, 0, 0, time.UTC)}
	}
	parked := idem.StateParked
	for _, tt := range []struct {
		reason string
		store  asaas.EventStore
		want   string
	}{
		{"nothing has failed", failed{}, ""},
		{"the first", failed{parked: {at("a", 1), at("b", 2)}}, "a"},
		{"what workers process is left alone", failed{idem.StatePending: {at("a", 1)}, parked: {at("b", 2)}}, "b"},
	} {
		client, _ := clientOn(t, looked(false, 3))
		for p, err := range asaas.Recover(t.Context(), client, "a", webhookToken, tt.store) {
			if err != nil || p.Step != asaas.RecoveryProbed || p.Oldest.ID != tt.want || p.Tried {
				t.Errorf("%s: got %q at the step %q, %v, want %q", tt.reason, p.Oldest.ID, p.Step, err, tt.want)
			}
			break
		}
	}
}

func TestTheWayIsProvedNoLongerThanItsContextLasts(t *testing.T) {
	t.Parallel()
	client, _ := clientOn(t, looked(false, 9))
	ctx, cancel := context.WithCancelCause(t.Context())
	client.Receiver = transport(func(r *http.Request) (*http.Response, error) {
		cancel(errors.New("enough"))
		return nil, context.Cause(r.Context())
	})
	_, err := stepsOf(ctx, client)
	if err == nil || !strings.HasSuffix(err.Error(), "nothing was changed: the way to https://shop.example/webhooks/asaas is not proved, it was interrupted: enough") {
		t.Errorf("got the error %v", err)
	}
}
