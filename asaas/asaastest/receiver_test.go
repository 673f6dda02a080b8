package asaastest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
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
