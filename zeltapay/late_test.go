package zeltapay_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
)

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
	processor := h.(*idem.Processor)
	refused := func() idem.Check {
		for _, c := range processor.Examine(t.Context(), idem.Limits{MaxFailures: 5}) {
			if c.Name == "refused" {
				return c
			}
		}
		t.Fatal("there is no check of refused deliveries")
		return idem.Check{}
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
	processor := idem.NewProcessor(nil, events)
	processor.Logger = nil
	for range 5 {
		if status, answer := deliver(processor, []byte(`{}`), "secret"); status != 503 || !strings.Contains(answer, "ambiguous_secret") {
			t.Errorf("answered %d %s, want 503", status, answer)
		}
	}
	if c := processor.Examine(t.Context(), idem.Limits{MaxFailures: 5})[0]; c.Healthy {
		t.Errorf("health says %s", c.Says)
	}
}
