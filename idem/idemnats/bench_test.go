package idemnats_test

import (
	"log/slog"
	"testing"

	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

// BenchmarkRelay compares a relay whose stream is on disk when it confirms with an
// inbox.
func BenchmarkRelay(b *testing.B) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // warnings between the results
	b.Run("in batches", func(b *testing.B) { brokertest.Benchmark(b, openOwn(1, true)(b).Publisher) })
	b.Run("one by one", func(b *testing.B) { brokertest.Benchmark(b, openOwn(1, false)(b).Publisher) })
}
