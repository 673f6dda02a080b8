package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/fixture"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const secret = "a secret"

// receiver accepts what verifies, and keeps the bodies.
type receiver struct {
	mu     sync.Mutex
	bodies []string
}

func (re *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if zeltapay.Verify(r.Header, body, secret) != nil {
		http.Error(w, "not mine", http.StatusUnauthorized)
		return
	}
	re.mu.Lock()
	defer re.mu.Unlock()
	re.bodies = append(re.bodies, string(body))
	_, _ = io.WriteString(w, `{"received":true}`)
}

// listening is a receiver with its URL.
func listening(t *testing.T) (re *receiver, url string) {
	t.Helper()
	re = new(receiver)
	server := httptest.NewServer(re)
	t.Cleanup(server.Close)
	return re, server.URL + "/webhooks/zeltapay"
}

// delivers runs the verb deliver.
func delivers(args ...string) (status int, out, errs string) {
	return runs(secret, append([]string{"deliver"}, args...)...)
}

func runs(secret string, args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	getenv := func(name string) string { return map[string]string{"ZELTAPAY_WEBHOOK_SECRET": secret}[name] }
	status = run(context.Background(), args, getenv, &o, &e)
	return status, o.String(), e.String()
}

func TestAnEventIsDeliveredAndItsAnswerPrinted(t *testing.T) {
	t.Parallel()
	re, url := listening(t)
	status, out, errs := delivers("-to", url, "payment.success", "-set", "transaction.amount=2990",
		"-set", "customer.customerName=1001", "-set", "metadata.note=a = b", "-id", "evt_1")
	if status != 0 || out != "200 payment.success evt_1: {\"received\":true}\n" || errs != "" {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	want := zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", "evt_1"), zeltapaytest.Set("transaction.externalPaymentId", "txn_evt_1"),
		zeltapaytest.Set("transaction.amount", 2990), zeltapaytest.Set("customer.customerName", "1001"),
		zeltapaytest.Set("metadata.note", "a = b"))
	if diff := cmp.Diff([]string{string(want)}, re.bodies); diff != "" {
		t.Error(diff)
	}
}

func TestLayoutsAndSparseBodies(t *testing.T) {
	t.Parallel()
	id := zeltapaytest.Set("eventId", "evt_1")
	for _, c := range []struct {
		args []string
		want []byte
	}{
		{[]string{"-layout", "nested"}, zeltapaytest.Nested.Event("payment.success", id, zeltapaytest.Set("transaction.id", "txn_evt_1"))},
		{[]string{"-sparse"}, zeltapaytest.Sparse("payment.success", id)},
		{
			[]string{"-sparse", "-layout=nested", "-set", `customer={"email":null}`},
			zeltapaytest.Nested.Sparse("payment.success", id, zeltapaytest.Set("customer.email", nil)),
		},
	} {
		re, url := listening(t)
		status, _, errs := delivers(append(c.args, "-id", "evt_1", "-to", url, "payment.success")...)
		if diff := cmp.Diff([]string{string(c.want)}, re.bodies); status != 0 || diff != "" {
			t.Errorf("%q: status %d, %s%s", c.args, status, errs, diff)
		}
	}
}

func TestAnEventThatIsNotAcceptedGivesStatus1(t *testing.T) {
	t.Parallel()
	_, url := listening(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct{ why, secret, url, out, errs string }{
		{"another secret", "another", url, "401 webhook.ping evt_1: not mine\n", "1 of 1"},
		{"nobody listens", secret, gone.URL, "no answer webhook.ping evt_1: dial tcp ", "1 of 1"},
	} {
		status, out, errs := runs(c.secret, "deliver", "-to", c.url, "-id", "evt_1", "webhook.ping")
		if status != 1 || !strings.HasPrefix(out, c.out) || errs != "zeltapay-fake: "+c.errs+" were not accepted\n" {
			t.Errorf("%s: status %d, %q, %q", c.why, status, out, errs)
		}
	}
}

// What every such command refuses is tested with fixture.Command.
func TestMistakesGiveStatus2AndSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"webhook.ping"}, "give the URL of your server, as http://localhost:8080/webhooks/zeltapay"},
		{[]string{"-to", "http://localhost:1", "payment.failed"}, "there are: payment.success, webhook.ping"},
		{[]string{"-to", "http://localhost:1", "webhook.ping", "-layout", "round"}, "there are flat and nested"},
		{[]string{"-to", "http://localhost:1", "webhook.ping", "-set", "eventId=evt_1"}, "use -id"},
	} {
		status, out, errs := delivers(c.args...)
		if status != 2 || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q, %q, want %q", c.args, status, out, errs, c.want)
		}
	}
}

// What every such command serves is tested with asaas-fake.
func TestAnOutageIsRehearsedByHand(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	var received []string
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case zeltapay.Verify(r.Header, body, secret) != nil: // by the machine's clock
			w.WriteHeader(http.StatusUnauthorized)
		case broken.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			received = append(received, zeltapay.Identify(body).ID) // deliveries come one after the other
		}
	}))
	defer shop.Close()
	o := &options{layout: "flat"}
	var told []string
	served, err := newFake(fixture.FakeOptions{To: shop.URL, Secret: secret, Address: "127.0.0.1:8090", Tell: func(line string) { told = append(told, line) }})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Fake.Close()
	ask := func(pattern, query string) (status int, body string) {
		method, path, _ := strings.Cut(pattern, " ")
		w := httptest.NewRecorder()
		served.Routes[pattern](w, httptest.NewRequest(method, path+query, nil))
		served.Fake.Advance(0)
		return w.Code, w.Body.String()
	}
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		body, err := o.event("payment.success", id, false)
		if err != nil {
			t.Fatal(err)
		}
		served.Fake.Emit(body)
	}
	served.Fake.Advance(24 * time.Hour)
	const letters, replay = "GET /fake/dead-letters", "POST /fake/dead-letters/replay"
	if _, body := ask(letters, ""); strings.Count(body, ", attempts 7: all retries failed, kept until ") != 3 {
		t.Errorf("the dead letters are %s", body)
	}
	broken.Store(false)
	for _, test := range []struct {
		query, body string
		status      int
	}{
		{"?id=evt_9", "there is no event \"evt_9\" in the dead-letter queue\n", http.StatusNotFound},
		{"?id=evt_2", `{"replayed":1}` + "\n", http.StatusOK},
		{"", `{"replayed":2}` + "\n", http.StatusOK},
	} {
		if status, body := ask(replay, test.query); status != test.status || body != test.body {
			t.Errorf("a replay of %q is answered %d %s", test.query, status, body)
		}
	}
	if got := strings.Join(received, " "); got != "evt_2 evt_1 evt_3" {
		t.Errorf("received %s", got)
	}
	if _, body := ask(letters, ""); body != "" || len(told) != 3+3*7+3+3+3 {
		t.Errorf("the dead letters are %s, after %d entries", body, len(told))
	}
}

func TestServeNeedsAServer(t *testing.T) {
	t.Parallel()
	var out, complaints strings.Builder
	status := run(t.Context(), []string{"serve", "-listen", "127.0.0.1:0"}, func(string) string { return "a secret" }, &out, &complaints)
	if status != 2 || out.String() != "" || !strings.HasPrefix(complaints.String(), "zeltapay-fake: give -to, the URL of your server") {
		t.Errorf("exit status %d, %q, %q", status, out.String(), complaints.String())
	}
}

func TestAnEventHasTheTimeOfTheFake(t *testing.T) {
	t.Parallel()
	o := options{layout: "flat"}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, eventType := range []string{"payment.success", "webhook.ping"} {
		body, err := o.event(eventType, "", false, stamp(eventType, at))
		if err != nil {
			t.Fatal(err)
		}
		if got := zeltapay.Identify(body).OccurredAt; !strings.Contains(string(body), "2026-11-21T12:00:00.000Z") || got.IsZero() {
			t.Errorf("%s: it happened at %s", eventType, got)
		}
	}
}
