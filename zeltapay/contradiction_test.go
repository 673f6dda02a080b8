package zeltapay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// deliverNamed posts a body with another name of its event in the header.
func deliverNamed(h http.Handler, body []byte, id string) (status int, answer string) {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/zeltapay", bytes.NewReader(body))
	zeltapay.Sign(r.Header, body, "secret", time.Now())
	r.Header.Set("Zeltapay-Event-Id", id)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestADifferenceFromTheSignedBodyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Zeltapay-Event-Id", "Zeltapay-Event-Type", "Zeltapay-Timestamp"} {
		var logged strings.Builder
		events := zeltapay.NewDispatcher("secret")
		events.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		for range 2 {
			r := zeltapaytest.Request("/", "secret", zeltapaytest.Event("payment.success"))
			r.Header.Set(name, "another")
			if e, err := events.Open(r); err != nil || e.ID == "another" || e.Type != "payment.success" {
				t.Errorf("another %s: it is %s of %s, %v", name, e.ID, e.Type, err)
			}
		}
		if strings.Count(logged.String(), "\n") != 1 || !strings.Contains(logged.String(), "header="+name+" type=payment.success") {
			t.Errorf("another %s: logged %q", name, &logged)
		}
	}
}

// The tests that Zelta Pay's guide on duplicates proposes.
func TestOneBodyUnderSeveralIDsOfTheHeaderIsOneEvent(t *testing.T) {
	t.Parallel()
	for why, body := range map[string][]byte{
		"an eventId":                    read(t, "testdata/payment_success_flat_1.1.0.json"),
		"no eventId, but a transaction": read(t, "testdata/payment_success_nested.json"),
		"neither":                       []byte(`{"type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":100}}`),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			pool, h := shop(t)
			answers := make(chan string, 10)
			for i := range cap(answers) {
				go func() {
					status, answer := deliverNamed(h, body, fmt.Sprint("evt_", i))
					answers <- fmt.Sprint(status, " ", answer)
				}()
			}
			got := make(map[string]int)
			for range cap(answers) {
				got[<-answers]++
			}
			want := map[string]int{`200 {"received":true}`: 1, `200 {"received":true,"duplicate":true}`: 9}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := count(t, pool, "payments") + count(t, pool, "idem_events"); n != 2 {
				t.Errorf("%d payments and events of 2", n)
			}
		})
	}
}

func TestABodyWithoutEventIDHasAName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ why, body, want string }{
		{"a payment has its transaction", `{"type":"payment.success","transaction":{"id":"txn_1"}}`, "payment.success:txn_1"},
		{"a transaction may be refunded twice", `{"type":"payment.refunded","transaction":{"id":"txn_1"}}`, ""},
		{"an id that is no text", `{"eventId":"\ud800","type":"webhook.ping"}`, idem.BodyID([]byte(`"\ud800"`))},
		{"another that decodes to the same", `{"eventId":"\udbff","type":"webhook.ping"}`, idem.BodyID([]byte(`"\udbff"`))},
		{"a transaction that is no text", "{\"type\":\"payment.success\",\"transaction\":{\"id\":\"\xff\"}}", "payment.success:" + idem.BodyID([]byte("\"\xff\""))},
		{"null is none", `{"eventId":null,"type":"webhook.ping"}`, ""},
		{"no JSON", `pong`, ""},
	} {
		if tt.want == "" {
			tt.want = idem.BodyID([]byte(tt.body))
		}
		if got := zeltapay.Identify([]byte(tt.body)).ID; got != tt.want {
			t.Errorf("%s: it is named %q, want %q", tt.why, got, tt.want)
		}
	}
}

// brittleHandler is a slog.Handler that panics.
type brittleHandler struct{ slog.Handler }

func (brittleHandler) Enabled(context.Context, slog.Level) bool { return true }

func (brittleHandler) Handle(context.Context, slog.Record) error { panic("no such disk") }

// What watches a delivery decides nothing about it: it is genuine.
func TestObserversOfAContradictionThatPanicChangeNothing(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher("secret")
	events.Logger = slog.New(brittleHandler{})
	events.Watch.Observe = func(drift.Finding) { panic("no metrics") }
	body := zeltapaytest.Event("payment.success")
	r := zeltapaytest.Request("/", "secret", body)
	r.Header.Set("Zeltapay-Event-Id", "evt_other")
	if _, err := events.Open(r); err != nil || len(events.Drift()) != 1 {
		t.Errorf("Open = %v, found %+v, want one finding", err, events.Drift())
	}
}

func TestADispatcherWithoutLoggerIsQuiet(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher("secret")
	events.Logger = nil
	body := zeltapaytest.Event("webhook.ping")
	r := zeltapaytest.Request("/", "secret", body)
	r.Header.Set("Zeltapay-Event-Id", "evt_other")
	r.Body = io.NopCloser(bytes.NewReader(body))
	if _, err := events.Open(r); err != nil {
		t.Error(err)
	}
}

// deliverSigned posts a body that was signed some time ago; a negative age is in the future.
func deliverSigned(h http.Handler, body []byte, secret string, age time.Duration) (status int, answer string) {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/zeltapay", bytes.NewReader(body))
	zeltapay.Sign(r.Header, body, secret, time.Now().Add(-age))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A delivery that is refused with 401 goes to the dead-letter queue at once.
func TestGenuinePaymentIsNeverAnswered401ForItsTime(t *testing.T) {
	t.Parallel()
	const (
		named = `{"eventId":"evt_%d","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":2500}}`
		plain = `{"type":"payment.success","paymentLink":{"id":"pl_%d","amount":2500},"transaction":{"id":"txn_%[1]d"}}`
		day   = 24 * time.Hour
	)
	for n, c := range []struct {
		why, body, secret string
		age               time.Duration
		status            int
		answer            string
	}{
		{"in time", named, "secret", 0, 200, `{"received":true}`},
		{"replayed by hand three weeks later, as it was signed once", named, "secret", 21 * day, 200, `{"received":true}`},
		{"on the last day that its first delivery would be remembered", named, "secret", 44*day - time.Minute, 200, `{"received":true}`},
		{"later than that: it could be done twice", named, "secret", 44*day + time.Minute, 503, "stale"},
		{"a clock that is 6 minutes behind", named, "secret", -6 * time.Minute, 503, "future"},
		{"a clock that is 6 minutes ahead, and no eventId", plain, "secret", 6 * time.Minute, 503, "stale"},
		{"forged, of three weeks ago", named, "guess", 21 * day, 401, "wrong_signature"},
		{"forged, of the future", named, "guess", -6 * time.Minute, 401, "wrong_signature"},
	} {
		_, h := shop(t)
		status, answer := deliverSigned(h, fmt.Appendf(nil, c.body, n), c.secret, c.age)
		if status != c.status || !strings.Contains(answer, c.answer) {
			t.Errorf("%s: answered %d %s, want %d %s", c.why, status, answer, c.status, c.answer)
		}
	}
}

// A machine's clock is off: the provider delivers again, and a person is told before it gives up.
func TestHealthIsRedWhenTheClockIsOffAndNotForARecordedDelivery(t *testing.T) {
	t.Parallel()
	_, h := shop(t)
	inbox := h.(*idem.Inbox)
	refused := func() check.Result {
		for _, c := range inbox.Examine(t.Context(), check.Limits{MaxFailures: 5}) {
			if c.Name == "refused" {
				return c
			}
		}
		t.Fatal("there is no check of refused deliveries")
		return check.Result{}
	}
	body := func(n int) []byte {
		return fmt.Appendf(nil, `{"eventId":"evt_%d","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":2500}}`, n)
	}
	for range 20 { // a stranger has recorded one
		deliverSigned(h, body(0), "secret", 60*24*time.Hour)
	}
	if c := refused(); !c.Healthy {
		t.Errorf("after one recorded delivery, many times: %s", c.Says)
	}
	for n := range 4 {
		deliverSigned(h, body(n+1), "secret", -6*time.Minute)
	}
	if c := refused(); c.Healthy || !strings.Contains(c.Says, "signed by the right secret, 6 minutes in the future") {
		t.Errorf("after five bodies: healthy %t, %s", c.Healthy, c.Says)
	}
	if status, answer := deliverSigned(h, body(1), "secret", 0); status != 200 {
		t.Errorf("once the clock is right: %d %s", status, answer)
	}
	if c := refused(); !c.Healthy {
		t.Errorf("once the clock is right: %s", c.Says)
	}
}

// Its events would be stored for one account or the other: the fault is the application's own.
func TestSecretOfTwoAccountsIsAnswered503(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher()
	events.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: "one", Secrets: []string{"secret"}}, {Scope: "two", Secrets: []string{"secret"}}}, nil
	}
	pool, err := pgxpool.New(t.Context(), "postgres://localhost/unused")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	inbox.Logger = nil
	for range 5 {
		if status, answer := deliver(inbox, []byte(`{}`), "secret"); status != 503 || !strings.Contains(answer, "ambiguous_secret") {
			t.Errorf("answered %d %s, want 503", status, answer)
		}
	}
	if c := inbox.Examine(t.Context(), check.Limits{MaxFailures: 5})[0]; c.Healthy {
		t.Errorf("health says %s", c.Says)
	}
}
