package zeltapaytest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const secret = "a secret"

// receiver answers with its statuses, one after the other, the last one again and again, and records each delivery.
type receiver struct {
	mu       sync.Mutex
	statuses []int
	got      []received
}

type received struct {
	id, attempt string
	signed      int64 // Unix seconds
	header      http.Header
	body        string
	err         error // of reading the body
}

func (re *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	re.mu.Lock()
	defer re.mu.Unlock()
	signed, _ := strconv.ParseInt(r.Header.Get("Zeltapay-Timestamp"), 10, 64)
	re.got = append(re.got, received{
		id: r.Header.Get("Zeltapay-Event-Id"), attempt: r.Header.Get("Zeltapay-Delivery-Attempt"),
		signed: signed, header: r.Header, body: string(body), err: err,
	})
	w.WriteHeader(re.statuses[0])
	if len(re.statuses) > 1 {
		re.statuses = re.statuses[1:]
	}
}

// ids are the ids of the deliveries, in their order.
func (re *receiver) ids() (ids []string) {
	re.mu.Lock()
	defer re.mu.Unlock()
	for _, got := range re.got {
		ids = append(ids, got.id)
	}
	return ids
}

func answering(statuses ...int) *receiver { return &receiver{statuses: statuses} }

// start makes timelines easy to read.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fakeFor delivers to a handler in this process.
func fakeFor(t *testing.T, h http.Handler) *zeltapaytest.Fake {
	t.Helper()
	fake := zeltapaytest.New()
	fake.Start = start
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: h})
	t.Cleanup(fake.Close)
	return fake
}

// named is an event with the id.
func named(id string) []byte {
	return zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", id))
}

// attempts are when they were made.
func attempts(fake *zeltapaytest.Fake) (at []time.Duration) {
	for _, e := range fake.Timeline() {
		if e.Kind == zeltapaytest.Delivered || e.Kind == zeltapaytest.Failed {
			at = append(at, e.At.Sub(start))
		}
	}
	return at
}

// lines are the timeline after it was queued, without date and type.
func lines(fake *zeltapaytest.Fake) (lines []string) {
	for _, e := range fake.Timeline() {
		if e.Kind != zeltapaytest.Queued {
			lines = append(lines, strings.ReplaceAll(strings.TrimPrefix(e.String(), "2026-01-"), " payment.success", ""))
		}
	}
	return lines
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// verifying is a receiver that checks signatures as package zeltapay does, on this clock.
func verifying(now func() time.Time) http.Handler {
	verifier := zeltapay.Verifier{Secrets: []string{secret}, Now: now}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err := verifier.Verify(r.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	})
}

func TestASlowReceiverTakesNoTimeOfTheFake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		works := 9 * time.Second
		fake := fakeFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(works):
			case <-r.Context().Done():
			}
		}))
		fake.Emit(named("evt_1"))
		fake.Settle()
		works = 11 * time.Second
		fake.Emit(named("evt_2"))
		fake.Advance(10 * time.Second)
		same(t, "the timeline", []string{
			"01 00:00:00 delivered evt_1, attempt 1: 200",
			"01 00:00:00 failed evt_2, attempt 1: no answer within 10s, next in 5s",
			"01 00:00:05 failed evt_2, attempt 2: no answer within 10s, next in 10s",
		}, lines(fake))
		same(t, "the bubble's time", 29*time.Second, time.Since(began))
	})
}

func TestAHandlerThatDiesGivesNoAnswer(t *testing.T) {
	t.Parallel()
	for want, die := range map[string]func(){
		"the handler panicked: boom":          func() { panic("boom") },
		"the handler ended without an answer": runtime.Goexit,
	} {
		fake := fakeFor(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { die() }))
		fake.Emit(named("evt_1"))
		fake.Settle()
		same(t, "the timeline", []string{"01 00:00:00 failed evt_1, attempt 1: " + want + ", next in 5s"}, lines(fake))
	}
}

// The bubble itself fails when a goroutine is left.
func TestCloseWaitsForHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		fake := zeltapaytest.New()
		fake.AddWebhook(zeltapaytest.Webhook{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			<-time.After(time.Second)
			ended = true
		})})
		fake.Emit(named("evt_1"))
		fake.Settle()
		for range 2 {
			fake.Close()
			if !ended {
				t.Error("the handler still runs")
			}
		}
		fake.Advance(day)
		if entries := fake.Timeline(); len(entries) != 2 {
			t.Errorf("after Close there are %d entries", len(entries))
		}
	})
}

func TestCloseWaitsNoLongerThanTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		fake := zeltapaytest.New()
		fake.AddWebhook(zeltapaytest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end })})
		fake.Emit(named("evt_1"))
		fake.Settle()
		before := time.Now()
		fake.Close()
		same(t, "the time that it took", 10*time.Second, time.Since(before))
		close(end)
	})
}

func TestCloseEndsADeliveryInFlight(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	fake := fakeFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	fake.Emit(named("evt_1"))
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		fake.Advance(day)
	}()
	<-arrived
	fake.Close()
	<-settled
	same(t, "the timeline", []string{"01 00:00:00 failed evt_1, attempt 1: the fake was closed, next in 5s"}, lines(fake))
}

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
