package asaastest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

const token = "the-token-of-the-webhook-of-the-test"

// shop is a receiver that answers as it is told, and records each delivery.
type shop struct {
	mu       sync.Mutex
	status   int
	statuses map[string]int // by event id, before status
	received []request
}

type request struct {
	method, path, remote string
	header               http.Header
	body                 []byte
	err                  error // of reading the body
}

func newShop(status int) *shop { return &shop{status: status, statuses: make(map[string]int)} }

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.received = append(s.received, request{r.Method, r.URL.Path, r.RemoteAddr, r.Header, body, err})
	status, ok := s.statuses[asaas.Identify(body).ID]
	if !ok {
		status = s.status
	}
	s.mu.Unlock()
	if err != nil {
		status = http.StatusBadRequest
	}
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "said the shop")
}

func (s *shop) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *shop) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

func (s *shop) ids() []string {
	var out []string
	for _, r := range s.requests() {
		out = append(out, asaas.Identify(r.body).ID)
	}
	return out
}

// newFake returns a fake that is closed when the test ends.
func newFake(t testing.TB) *asaastest.Fake {
	t.Helper()
	fake := asaastest.New()
	t.Cleanup(fake.Close)
	return fake
}

// everyWay runs a test with a receiver in memory, and with one on a socket.
func everyWay(t *testing.T, test func(t *testing.T, receive func(http.Handler) asaastest.Webhook)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, func(h http.Handler) asaastest.Webhook {
			return asaastest.Webhook{Handler: h, URL: "https://shop.example/webhooks/asaas", Token: token}
		})
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		test(t, func(h http.Handler) asaastest.Webhook {
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			return asaastest.Webhook{URL: server.URL + "/webhooks/asaas", Token: token}
		})
	})
}

// paid makes an event with an id.
func paid(id string) []byte {
	return asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", id))
}

// of returns the entries of these kinds.
func of(fake *asaastest.Fake, kinds ...asaastest.Kind) []asaastest.Entry {
	return slices.DeleteFunc(fake.Timeline(), func(e asaastest.Entry) bool { return !slices.Contains(kinds, e.Kind) })
}

// times returns when the entries happened, from the first on.
func times(since time.Time, entries []asaastest.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.At.Sub(since).String())
	}
	return out
}

func eventIDs(entries []asaastest.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.EventID)
	}
	return out
}

func lines(entries []asaastest.Entry) string {
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

func clientOf(fake *asaastest.Fake) *http.Client { return &http.Client{Transport: fake.Transport()} }

func TestRunsAreTheSame(t *testing.T) {
	t.Parallel()
	run := func() []asaastest.Entry {
		s, fake := newShop(http.StatusOK), newFake(t)
		s.statuses["evt_2"] = http.StatusInternalServerError
		s.statuses["evt_3"] = http.StatusTeapot
		fake.AddWebhook(asaastest.Webhook{Handler: s})
		fake.AddWebhook(asaastest.Webhook{Handler: s, SendType: asaastest.NonSequentially})
		fake.Inject(asaastest.Concurrent, 0, asaastest.LostAnswer, asaastest.Swap|asaastest.SlowBody, asaastest.CutBody|asaastest.Duplicate)
		for i := range 30 {
			fake.Emit(paid(fmt.Sprintf("evt_%d", i)))
			fake.Advance(17 * time.Minute)
		}
		return fake.Timeline()
	}
	first := run()
	for range 3 {
		if diff := cmp.Diff(first, run()); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
	}
}

func TestObserveIsToldTheTimeline(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	var told []asaastest.Entry
	fake.Observe = func(e asaastest.Entry) { told = append(told, e) }
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusInternalServerError)})
	fake.Emit(paid("evt_1"))
	fake.Advance(day)
	fake.RemoveBackoff(webhook)
	fake.Resume(webhook)
	fake.Advance(20 * day)
	if diff := cmp.Diff(fake.Timeline(), told); diff != "" {
		t.Errorf("(-timeline +told):\n%s", diff)
	}
	for _, kind := range []asaastest.Kind{"queued", "failed", "emailed", "paused", "backoff removed", "resumed", "deleted"} {
		if len(of(fake, kind)) == 0 {
			t.Errorf("nothing is %s", kind)
		}
	}
}

func TestMistakesInTheUseSayWhatToDo(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	for range 10 {
		fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK), Events: []asaas.EventType{}})
	}
	fake.Emit(paid("evt_1"))
	for _, test := range []struct {
		why  string
		do   func()
		says string
	}{
		{"no JSON", func() { fake.Emit([]byte("{")) }, "the body is no event"},
		{"no type", func() { fake.Emit([]byte(`{"id":"evt_1"}`)) }, "the body is no event"},
		{"no receiver", func() { fake.AddWebhook(asaastest.Webhook{}) }, "needs a URL or a Handler"},
		{"the eleventh webhook", func() { fake.AddWebhook(asaastest.Webhook{URL: "http://a.example"}) }, "at most 10 webhooks"},
		{"an unknown webhook", func() { fake.Resume("1") }, `there is no webhook "1"`},
		{"back in time", func() { fake.Advance(-1) }, "the clock does not go back"},
	} {
		if got := panicOf(test.do); !strings.HasPrefix(got, "asaastest: ") || !strings.Contains(got, test.says) {
			t.Errorf("%s: panics with %q, want %q", test.why, got, test.says)
		}
	}
	fake.Settle() // it is not locked
}

func TestAnEventThatIsEmittedAgainIsSentAgain(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: s})
	body := paid("evt_1")
	fake.Emit(body)
	fake.Advance(10 * day)
	fake.Emit(body)
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_1", "evt_1"}, s.ids()); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if _, said := call(t, fake, http.MethodGet, "/v3/financialTransactions", ""); said["totalCount"] != 3.0 {
		t.Errorf("the statement has %v movements, want 3: its money, its fee and its split", said["totalCount"])
	}
}

func TestReceiverMayUseTheFakeButNotItsClock(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	var said string
	var webhook string
	webhook = fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		said = panicOf(fake.Settle)
		if fake.Webhook(webhook).Pending == 1 && len(fake.Timeline()) == 1 {
			fake.Emit(paid("evt_2"))
		}
	})})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_1", "evt_2"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	if !strings.Contains(said, "not from a receiver") {
		t.Errorf("Settle in a receiver panics with %q", said)
	}
}

// A bubble fails its test when a goroutine is left at its end.
func TestFakeWorksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		var takes atomic.Int64
		takes.Store(int64(11 * time.Second))
		webhook := fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Duration(takes.Load()))
		})})
		began := time.Now()
		fake.Emit(paid("evt_1"))
		fake.Settle()
		if failed := of(fake, asaastest.Failed); len(failed) != 1 || failed[0].Error != "no answer within 10s" {
			t.Errorf("it happened:\n%s", lines(fake.Timeline()))
		}
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Asaas waited for %s", got)
		}
		takes.Store(int64(9 * time.Second))
		r := newRequest(t, fake, http.MethodPost, "/v3/webhooks/"+webhook+"/removeBackoff", "{}")
		answer, err := clientOf(fake).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		fake.Settle()
		if answer.StatusCode != http.StatusNoContent || fake.Webhook(webhook).Pending != 0 {
			t.Errorf("removeBackoff: %s, %+v", answer.Status, fake.Webhook(webhook))
		}
	})
}

func TestClosedServerListensNoMore(t *testing.T) {
	t.Parallel()
	fake := asaastest.NewServer()
	asked := make(chan error, 1)
	arrived := make(chan bool)
	fake.InjectAPI(func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		close(arrived)
		asaastest.APISilence(w, r, api)
	})
	r := newRequest(t, fake, http.MethodPost, "/v3/webhooks", "{}")
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		asked <- err
	}()
	<-arrived
	fake.Close()
	fake.Close() // twice is once
	if err := <-asked; err == nil {
		t.Error("the request in flight is answered")
	}
	answer, err := http.DefaultClient.Do(newRequest(t, fake, http.MethodGet, "/v3/webhooks", ""))
	if err == nil {
		answer.Body.Close()
		t.Error("it still listens")
	}
	if _, err := clientOf(fake).Do(newRequest(t, fake, http.MethodGet, "/v3/webhooks", "")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the client of a closed fake gets %v", err)
	}
}

func TestAClientWaitsInTheTimeOfTheFake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		broken := true
		id := fake.AddWebhook(asaastest.Webhook{Token: "a token", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			dryRun := r.Header.Get(idem.DryRunHeader) != ""
			if broken || dryRun {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			if dryRun {
				fmt.Fprint(w, `{"received":false,"dry_run":"done"}`)
			}
		})})
		fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
		fake.Advance(24 * time.Hour)
		broken = false
		start, began := fake.Now(), time.Now()
		for _, err := range asaas.Recover(t.Context(), fake.Client(), id, "a token", nil) {
			if err != nil {
				t.Error(err)
			}
		}
		if passed := fake.Now().Sub(start); passed != 15*time.Second || !time.Now().Equal(began) || fake.Webhook(id).Pending != 0 {
			t.Errorf("%s passed at the fake, %s really, %d events wait", passed, time.Since(began), fake.Webhook(id).Pending)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if fake.Client().Wait(ctx, time.Hour) == nil || !fake.Now().Equal(start.Add(15*time.Second)) {
			t.Error("it waits though the context is over")
		}
	})
}

func TestAClientIsOfTheEnvironmentOfTheKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"$aact_hmlg_fake", "$aact_prod_fake"} {
		fake := asaastest.New()
		defer fake.Close()
		fake.APIKey = key
		for w, err := range fake.Client().Webhooks(t.Context()) {
			t.Errorf("%s: %v, %v", key, w, err)
		}
	}
}
