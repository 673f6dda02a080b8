package zeltapaytest_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
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
