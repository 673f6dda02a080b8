package idemnats_test

import (
	"testing"

	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

// BenchmarkRelay compares a relay whose stream is on disk when it confirms with an
// inbox.
func BenchmarkRelay(b *testing.B) {
	brokertest.Benchmark(b, openOwn(1, true)(b).Publisher)
}
