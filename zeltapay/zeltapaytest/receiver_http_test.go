package zeltapaytest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// fakeOver delivers to a handler over HTTP.
func fakeOver(t *testing.T, h http.Handler) *zeltapaytest.Fake {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return fakeTo(t, server.URL+"/webhooks/zeltapay?tenant=1")
}

func fakeTo(t *testing.T, url string) *zeltapaytest.Fake {
	t.Helper()
	fake := zeltapaytest.New()
	fake.Start = start
	fake.AddWebhook(zeltapaytest.Webhook{URL: url, Secret: secret})
	t.Cleanup(fake.Close)
	return fake
}

type request struct{ Method, URI, Path, Query, Type, Signature, Body string }

func TestBothWaysToAReceiverBringTheSameRequest(t *testing.T) {
	t.Parallel()
	var got []request
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got = append(got, request{
			r.Method, r.RequestURI, r.URL.Path, r.URL.RawQuery,
			r.Header.Get("Content-Type"), r.Header.Get("Zeltapay-Signature"), string(body),
		})
		if err != nil || r.ContentLength != int64(len(body)) || r.RemoteAddr == "" || r.Host == "" {
			t.Errorf("Content-Length %d from %q to %q: %v", r.ContentLength, r.RemoteAddr, r.Host, err)
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, strings.Repeat("a", 5000))
	})
	fake := fakeOver(t, h)
	fake.AddWebhook(zeltapaytest.Webhook{URL: "http://receiver.example/webhooks/zeltapay?tenant=1", Secret: secret, Handler: h})
	body := named("evt_1")
	fake.Emit(body)
	fake.Settle()
	same(t, "the second request", got[0], got[1])
	want := request{"POST", "/webhooks/zeltapay?tenant=1", "/webhooks/zeltapay", "tenant=1", "application/json", got[0].Signature, string(body)}
	same(t, "the request", want, got[0])
	for _, e := range fake.Timeline()[2:] {
		if e.Status != http.StatusAccepted || e.Answer != strings.Repeat("a", 4096) {
			t.Errorf("%s, with %d bytes", e, len(e.Answer))
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	asked := 0
	fake := fakeOver(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	fake.Emit(named("evt_1"))
	fake.Settle()
	same(t, "the timeline", []string{"01 00:00:00 failed evt_1, attempt 1: 307, next in 5s"}, lines(fake))
	if asked != 1 {
		t.Errorf("%d requests", asked)
	}
}

func TestAReceiverThatIsDownIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answering(200))
	server.Close()
	fake := fakeTo(t, server.URL+"/?token=hidden")
	fake.Emit(named("evt_1"))
	fake.Settle()
	e := fake.Timeline()[1]
	if e.Error == "" || e.Status != 0 || e.Next.Sub(e.At) != 5*time.Second || strings.Contains(e.String(), "hidden") {
		t.Errorf("%s", e)
	}
}

func TestOverHTTPACutBodyArrivesByHalf(t *testing.T) {
	t.Parallel()
	type read struct {
		body string
		err  error
	}
	got := make(chan read, 2)
	fake := fakeOver(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got <- read{string(body), err}
	}))
	fake.Inject(zeltapaytest.CutBody)
	body := named("evt_1")
	fake.Emit(body)
	fake.Settle()
	first := <-got
	same(t, "the first body", string(body[:len(body)/2]), first.body)
	if !errors.Is(first.err, io.ErrUnexpectedEOF) {
		t.Errorf("reading the cut body gives %v", first.err)
	}
	fake.Advance(day)
	if second := <-got; second != (read{string(body), nil}) {
		t.Errorf("the second body is %+v", second)
	}
}

func TestOverHTTPASlowBodyComesWhole(t *testing.T) {
	t.Parallel()
	re := answering(200)
	fake := fakeOver(t, re)
	fake.Inject(zeltapaytest.SlowBody)
	body := named("evt_1")
	fake.Emit(body)
	fake.Settle()
	same(t, "the body", string(body), re.got[0].body)
}

func TestOverHTTPAnAnswerIsNotWaitedForLongerThanTimeout(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	fake := fakeOver(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(func() { close(end) }) // before the server closes
	fake.Timeout = 20 * time.Millisecond
	fake.Emit(named("evt_1"))
	fake.Settle()
	same(t, "the timeline", []string{"01 00:00:00 failed evt_1, attempt 1: no answer within 20ms, next in 5s"}, lines(fake))
}
