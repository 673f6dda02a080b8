package zeltapay_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

func BenchmarkOpen(b *testing.B) {
	body := read(b, "testdata/payment_success_flat_1.1.0.json")
	events := zeltapay.NewDispatcher("secret")
	events.Verifier.Now = at(vectorTime)
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
	verifier := zeltapay.Verifier{Secrets: []string{"secret"}, Tolerance: 24 * time.Hour, Now: at(vectorTime)}
	b.ReportAllocs()
	for b.Loop() {
		if err := verifier.Verify(h, body); err != nil {
			b.Fatal(err)
		}
	}
}
