package zeltapay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// forEachFixture runs a test with the full and the sparse body of every event
// type, in both layouts.
func forEachFixture(t *testing.T, test func(t *testing.T, eventType zeltapay.EventType, body []byte)) {
	t.Helper()
	for _, eventType := range zeltapaytest.Types() {
		for _, layout := range []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested} {
			name := string(eventType) + "/" + string(layout)
			t.Run(name+"/full", func(t *testing.T) { test(t, eventType, layout.Event(eventType)) })
			t.Run(name+"/sparse", func(t *testing.T) { test(t, eventType, layout.Sparse(eventType)) })
		}
	}
}

func TestEachFixtureIsIdentified(t *testing.T) {
	t.Parallel()
	forEachFixture(t, func(t *testing.T, eventType zeltapay.EventType, body []byte) {
		sent := tree(t, body)
		e := zeltapay.Identify(body)
		if e.ID != sent["eventId"] || e.Type != string(eventType) {
			t.Errorf("it is %s of type %s, want %s of type %s", e.ID, e.Type, sent["eventId"], eventType)
		}
		link, _ := sent["paymentLinkId"].(string)
		if nested, ok := sent["paymentLink"].(map[string]any); ok {
			link = nested["id"].(string)
		}
		if e.Key != link {
			t.Errorf("it is about %q, want %q", e.Key, link)
		}
	})
}

func TestEachFixtureReachesItsHandler(t *testing.T) {
	t.Parallel()
	forEachFixture(t, func(t *testing.T, eventType zeltapay.EventType, body []byte) {
		got := make(map[string]zeltapay.Event)
		d := zeltapay.NewDispatcher("a secret")
		d.OnPaymentSuccess(func(_ context.Context, _ pgx.Tx, e *zeltapay.PaymentEvent) error {
			got["payment.success"] = e
			return nil
		})
		d.OnWebhookPing(func(_ context.Context, _ pgx.Tx, e *zeltapay.PingEvent) error {
			got["webhook.ping"] = e
			return nil
		})
		r := zeltapaytest.Request("/webhooks/zeltapay", "a secret", body)
		posted, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Open(withBody(r, posted))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Dispatch(t.Context(), nil, e); err != nil {
			t.Fatal(err)
		}
		want := map[string]zeltapay.Event{string(eventType): parsed(t, body)}
		if diff := cmp.Diff(written(t, want), written(t, got)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// written is what events encode to: unlike them, it can be compared.
func written(t *testing.T, events map[string]zeltapay.Event) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for name, e := range events {
		out[name] = string(encoded(t, e))
	}
	return out
}

func TestNoFieldOfAFixtureIsLost(t *testing.T) {
	t.Parallel()
	forEachFixture(t, func(t *testing.T, _ zeltapay.EventType, body []byte) {
		if diff := cmp.Diff(tree(t, body), tree(t, encoded(t, parsed(t, body)))); diff != "" {
			t.Errorf("-sent +written back:\n%s", diff)
		}
	})
}

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
