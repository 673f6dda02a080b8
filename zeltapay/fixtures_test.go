package zeltapay_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestTypesOfFixturesAreKnown(t *testing.T) {
	t.Parallel()
	var got []string
	for _, eventType := range zeltapaytest.Types() {
		if !eventType.Known() {
			t.Errorf("%s is not known", eventType)
		}
		got = append(got, string(eventType))
	}
	want := []string{"payment.success", "webhook.ping"}
	if diff := cmp.Diff(want, got); diff != "" {
		names, _ := json.Marshal(got)
		t.Errorf("there are fixtures of %s (-want +got):\n%s", names, diff)
	}
}

// withBody is r with a body to be read once.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

func BenchmarkOpen(b *testing.B) {
	body := read(b, "testdata/payment_success_flat_1.1.0.json")
	events := zeltapay.NewDispatcher("secret")
	events.Now = at(vectorTime)
	r := delivery(body, "secret")
	zeltapay.Sign(r.Header, body, "secret", vectorTime)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if e, err := events.Open(withBody(r, body)); err != nil || e.Key == "" {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	body := read(b, "testdata/payment_success_flat_1.1.0.json")
	h := delivery(body, "secret").Header
	zeltapay.Sign(h, body, "secret", vectorTime)
	receiver := verifier{Secrets: []string{"secret"}, Tolerance: 24 * time.Hour, Now: at(vectorTime)}
	b.ReportAllocs()
	for b.Loop() {
		if err := receiver.Verify(h, body); err != nil {
			b.Fatal(err)
		}
	}
}

// driftOf lists "kind path" of what d finds in a body.
func driftOf(d *zeltapay.Dispatcher, body string) string {
	_, _ = d.Route(zeltapay.Identify([]byte(body)))
	var got []string
	for _, f := range d.Drift() {
		got = append(got, string(f.Kind)+" "+f.Path)
	}
	return strings.Join(got, ", ")
}

func TestBodiesAsDocumentedHaveNoDrift(t *testing.T) {
	t.Parallel()
	for _, name := range bodies(t) {
		if strings.Contains(name, "unknown") {
			continue
		}
		if got := driftOf(zeltapay.NewDispatcher("secret"), string(read(t, name))); got != "" {
			t.Errorf("%s: found %s", name, got)
		}
	}
}
