package asaas_test

import (
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

func BenchmarkIdentify(b *testing.B) {
	for _, name := range bodies {
		body := testdata(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if e := asaas.Identify(body); e.Decoded == nil {
					b.Fatal("the body does not decode")
				}
			}
		})
	}
}
