package idemkafka_test

import (
	"testing"

	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

// BenchmarkRelay compares a relay whose broker has nothing on disk when it confirms
// with an inbox.
func BenchmarkRelay(b *testing.B) { brokertest.Benchmark(b, openFake(b).Publisher) }
