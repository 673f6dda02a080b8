package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

// printed takes lines.
type printed chan string

// Write implements [io.Writer]: each call is a line.
func (p printed) Write(line []byte) (int, error) {
	p <- strings.TrimSuffix(string(line), "\n")
	return len(line), nil
}

// serving runs zeltapay-fake serve, and returns its address.
func serving(t *testing.T, args ...string) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	lines, status := make(printed, 10_000), make(chan int, 1)
	getenv := func(string) string { return "a secret" }
	go func() {
		status <- run(ctx, append([]string{"serve", "-listen", "127.0.0.1:0", "-speed", "0"}, args...), getenv, lines, lines)
	}()
	t.Cleanup(func() {
		stop()
		if got := <-status; got != 0 {
			t.Errorf("exit status %d", got)
		}
	})
	for line := range lines {
		if address, ok := strings.CutSuffix(line, "/fake/timeline  # all that happened"); ok {
			return strings.TrimPrefix(address, "curl ")
		}
	}
	return ""
}

// call makes a request with a method and an empty body, or as curl -d does.
func call(t *testing.T, method, address string, form url.Values) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestAnOutageIsRehearsedByHand(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	var received []string
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case zeltapay.Verify(r.Header, body, "a secret") != nil: // by the machine's clock
			w.WriteHeader(http.StatusUnauthorized)
		case broken.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			received = append(received, zeltapay.Identify(body).ID) // deliveries come one after the other
		}
	}))
	defer shop.Close()
	at := serving(t, "-to", shop.URL)
	for _, id := range []string{"evt_1", "evt_2"} {
		if status, body := call(t, http.MethodPost, at+"/fake/events/payment.success?id="+id, url.Values{"transaction.amount": {"2990"}}); status != http.StatusOK || body != `{"emitted":["`+id+`"]}`+"\n" {
			t.Errorf("answered %d %s", status, body)
		}
	}
	call(t, http.MethodPost, at+"/fake/events/webhook.ping?id=evt_3", nil)
	call(t, http.MethodPost, at+"/fake/advance?for=24h", nil)
	if _, body := call(t, http.MethodGet, at+"/fake/dead-letters", nil); strings.Count(body, `"reason":"all retries failed","attempts":7,`) != 3 {
		t.Errorf("the dead letters are %s", body)
	}
	broken.Store(false)
	replay := at + "/fake/dead-letters/replay"
	if status, _ := call(t, http.MethodPost, replay+"?id=evt_9", nil); status != http.StatusNotFound {
		t.Errorf("what is not there is answered with %d", status)
	}
	if _, body := call(t, http.MethodPost, replay+"?id=evt_2", nil); body != `{"replayed":1}`+"\n" {
		t.Error(body)
	}
	call(t, http.MethodPost, at+"/fake/advance?for=0s", nil)
	if _, body := call(t, http.MethodPost, replay, nil); body != `{"replayed":2}`+"\n" {
		t.Error(body)
	}
	call(t, http.MethodPost, at+"/fake/advance?for=0s", nil)
	if got := strings.Join(received, " "); got != "evt_2 evt_1 evt_3" {
		t.Errorf("received %s", got)
	}
	if _, body := call(t, http.MethodGet, at+"/fake/dead-letters", nil); body != "[]\n" {
		t.Errorf("the dead letters are %s", body)
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
		body, err := o.event(eventType, false, stamp(eventType, at))
		if err != nil {
			t.Fatal(err)
		}
		if got := zeltapay.Identify(body).OccurredAt; !strings.Contains(string(body), "2026-11-21T12:00:00.000Z") || got.IsZero() {
			t.Errorf("%s: it happened at %s", eventType, got)
		}
	}
}
