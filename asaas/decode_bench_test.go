package asaas_test

import (
	"encoding/json"
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

// BenchmarkDecode is what an event costs before its transaction begins, on the
// largest body of testdata: naming it, parsing it, and what a delivery costs,
// which is named and then decoded for its handler.
func BenchmarkDecode(b *testing.B) {
	body := testdata(b, "partially_refunded_with_split")
	for _, bench := range []struct {
		name string
		run  func() error
	}{
		{"Identify", func() error { asaas.Identify(body); return nil }},
		{"Parse", func() error { _, err := asaas.Parse(body); return err }},
		{"Unmarshal", func() error { return json.Unmarshal(body, new(asaas.PaymentEvent)) }},
		{"Identify+Unmarshal", func() error {
			return json.Unmarshal(asaas.Identify(body).Payload, new(asaas.PaymentEvent))
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
