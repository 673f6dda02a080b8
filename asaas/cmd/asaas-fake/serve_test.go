package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// rehearsal is asaas-fake serve, as it runs.
type rehearsal struct {
	address string
	lines   chan string
	status  chan int
	stop    func()
}

// Write implements [io.Writer]: each call is a line.
func (r *rehearsal) Write(line []byte) (int, error) {
	r.lines <- strings.TrimSuffix(string(line), "\n")
	return len(line), nil
}

func serving(t *testing.T, args ...string) *rehearsal {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &rehearsal{lines: make(chan string, 10_000), status: make(chan int, 1), stop: stop}
	getenv := func(name string) string { return map[string]string{"ASAAS_WEBHOOK_TOKEN": token}[name] }
	args = append([]string{"serve", "-listen", "127.0.0.1:0", "-speed", "0"}, args...)
	go func() { r.status <- run(ctx, args, getenv, r, r) }()
	for line := range r.lines {
		if address, ok := strings.CutSuffix(line, "/fake/timeline  # all that happened"); ok {
			r.address = strings.TrimPrefix(address, "curl ")
			break
		}
	}
	t.Cleanup(func() {
		stop()
		if status := <-r.status; status != 0 {
			t.Errorf("exit status %d", status)
		}
	})
	return r
}

// post calls the server as curl -d does.
func (r *rehearsal) post(t *testing.T, path string, form url.Values) (status int, body string) {
	t.Helper()
	answer, err := http.PostForm(r.address+path, form)
	return read(t, answer, err)
}

func (r *rehearsal) timeline(t *testing.T) string {
	t.Helper()
	answer, err := http.Get(r.address + "/fake/timeline")
	_, body := read(t, answer, err)
	return body
}

func read(t *testing.T, answer *http.Response, err error) (status int, body string) {
	t.Helper()
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

func TestEachEventOfAServerIsAboutAChargeOfItsOwn(t *testing.T) {
	t.Parallel()
	shop := newServer(t, http.StatusOK)
	r := serving(t, "-to", shop.url)
	for _, query := range []string{"", "", "?id=evt_1", "?id=evt_1"} {
		if status, body := r.post(t, "/fake/events/PAYMENT_RECEIVED"+query, url.Values{"payment.value": {"10.5"}}); status != http.StatusOK {
			t.Fatal(body)
		}
	}
	r.post(t, "/fake/advance?for=1s", nil)
	charges := make(map[string]int)
	for _, e := range payments(t, shop) {
		charges[e.Payment.ID]++
	}
	if len(charges) != 3 || len(shop.bodies) != 4 {
		t.Errorf("%d events are about the charges %v, want 4 about 3", len(shop.bodies), charges)
	}
}

func TestAnOutageIsRehearsedByHand(t *testing.T) {
	t.Parallel()
	start := time.Now()
	shop := newServer(t, http.StatusServiceUnavailable)
	r := serving(t, "-to", shop.url)
	for range 2 {
		status, body := r.post(t, "/fake/events/PAYMENT_RECEIVED", url.Values{"payment.value": {"10.5"}, "payment.id": {"pay_1_a1B2c3D4e5F6g7"}})
		if status != http.StatusOK || !strings.Contains(body, `{"emitted":"evt_`) {
			t.Errorf("%d %s", status, body)
		}
	}
	if status, body := r.post(t, "/fake/advance", url.Values{"for": {"24h"}}); status != http.StatusOK || !strings.Contains(body, `{"now":"`) {
		t.Errorf("%d %s", status, body)
	}
	client, err := asaas.NewClient(asaas.Sandbox, "$aact_hmlg_fake")
	if err != nil {
		t.Fatal(err)
	}
	client.BaseURL, client.Poll = r.address+"/v3", time.Millisecond
	var stopped *asaas.Webhook
	for w, err := range client.Webhooks(t.Context()) {
		if stopped = w; err != nil || !w.Interrupted.Or(false) {
			t.Fatalf("got %+v, %v", w, err)
		}
	}
	shop.status.Store(http.StatusOK)
	before := len(shop.bodies)
	for progress, err := range asaas.Recover(t.Context(), client, stopped.ID, token, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if progress.Step == asaas.RecoveryResumed {
			r.post(t, "/fake/advance?for=1s", nil)
		}
	}
	bodies := shop.bodies[before:]
	if len(bodies) != 2 || !strings.Contains(string(bodies[0]), `"value":10.5,`) {
		t.Fatalf("%d were received: %q", len(bodies), bodies)
	}
	if e := asaas.Identify(bodies[0]); e.OccurredAt.Before(start.Truncate(time.Second)) {
		t.Errorf("the event happened at %s", e.OccurredAt)
	}
	told := r.timeline(t)
	for _, want := range []string{
		"attempt 15: 503", " emailed PAYMENT_RECEIVED evt_", ", attempt 5\n", " paused\n", " resumed\n", "attempt 16: 200",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the timeline lacks %q:\n%s", want, told)
		}
	}
	for line := range strings.Lines(told) {
		if got := <-r.lines; got+"\n" != line {
			t.Fatalf("printed %q, and the timeline has %q", got, line)
		}
	}
}

func TestAsaasDeletesWhatWaitsForTwoWeeks(t *testing.T) {
	t.Parallel()
	r := serving(t, "-to", newServer(t, http.StatusServiceUnavailable).url)
	r.post(t, "/fake/events/PAYMENT_RECEIVED?id=evt_1", nil)
	r.post(t, "/fake/advance?for=360h", nil)
	if told := r.timeline(t); !strings.Contains(told, "deleted PAYMENT_RECEIVED evt_1, attempt 15\n") {
		t.Error(told)
	}
}

func TestServeSaysWhatIsWrongWithARequest(t *testing.T) {
	t.Parallel()
	r := serving(t)
	for path, says := range map[string]string{
		"/fake/events/PAYMENT_RECIEVED": `there is no event type "PAYMENT_RECIEVED"`,
		"/fake/advance?for=tomorrow":    "for is no time such as 90m or 24h",
		"/fake/advance?for=-1h":         "for is no time",
		"/fake/advance?for=2540400h":    "for is no time",
	} {
		if status, body := r.post(t, path, nil); status != http.StatusBadRequest || !strings.Contains(body, says) {
			t.Errorf("%s: answered %d %s", path, status, body)
		}
	}
	if status, body := r.post(t, "/fake/events/PAYMENT_RECEIVED", url.Values{"payment.valu": {"1"}}); status != http.StatusBadRequest || !strings.Contains(body, "there is no field payment.valu") {
		t.Errorf("answered %d %s", status, body)
	}
}

func TestServeUsedInAWrongWayExits2(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		token, says string
		args        []string
	}{
		{token, "-to is \"shop\": give the URL of your server", []string{"-to", "shop"}},
		{"", "ASAAS_WEBHOOK_TOKEN is not set", []string{"-to", "http://localhost:1"}},
		{token, "-speed: the speed is not from 0 to a million", []string{"-speed", "-1"}},
		{token, "-speed: the speed is not from 0 to a million", []string{"-speed", "1000001"}},
		{token, "-speed: the speed is not from 0 to a million", []string{"-speed", "NaN"}},
		{token, `"PAYMENT_RECEIVED" is too much`, []string{"PAYMENT_RECEIVED"}},
		{token, "-listen: ", []string{"-listen", "256.0.0.1:1"}},
		{token, "asaas-fake help serve prints the flags", []string{"-fast"}},
	} {
		status, out, complaints := fakeWith(test.token, append([]string{"serve"}, test.args...)...)
		if status != 2 || out != "" || !strings.Contains(complaints, test.says) || strings.Count(complaints, "\n") != 1 {
			t.Errorf("%v: exit status %d, prints %q, %q", test.args, status, out, complaints)
		}
	}
	if status, out, _ := fake("serve", "-help"); status != 0 || !strings.Contains(out, "-speed N") {
		t.Errorf("exit status %d, %q", status, out)
	}
}

// What serve documents is what it takes.
func TestServeIsDocumented(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"main.go", filepath.Join("..", "..", "..", "zeltapay", "cmd", "zeltapay-fake", "main.go")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, out, _ := fake("serve", "-help")
		for _, flag := range []string{"listen", "to", "speed"} {
			if !strings.Contains(string(text), "\n//	-"+flag+" ") || !strings.Contains(out, "-"+flag+" ") {
				t.Errorf("%s does not document -%s", file, flag)
			}
		}
	}
}
