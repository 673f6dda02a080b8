package idemnats_test

import (
	"testing"

	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

// BenchmarkRelay compares a relay with a stream that is on disk when it confirms with an
// inbox.
func BenchmarkRelay(b *testing.B) {
	b.Run("in batches", func(b *testing.B) { brokertest.Benchmark(b, openOwn(layout{partitions: 1}, true)(b).Publisher) })
	b.Run("one by one", func(b *testing.B) { brokertest.Benchmark(b, openOwn(layout{partitions: 1}, false)(b).Publisher) })
}
