package idemkafka_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/idemkafka"
)

// BenchmarkRelay compares a relay with a broker that has nothing on disk when it confirms
// with an inbox.
func BenchmarkRelay(b *testing.B) { brokertest.Benchmark(b, openFake(b).Publisher) }

// BenchmarkConsume consumes messages with a handler that does nothing.
func BenchmarkConsume(b *testing.B) {
	f := startFake(b)
	client := newClient(b, kgo.SeedBrokers(f.addresses...))
	for n := range b.N {
		r := &kgo.Record{Topic: f.topic, Key: strconv.AppendInt(nil, int64(n%1000), 10), Value: make([]byte, 2000)}
		client.Produce(b.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var handled atomic.Int64
	b.ResetTimer()
	err := idemkafka.Consume(ctx, newClient(b, consuming(f.topic, f.addresses...)...), func(context.Context, broker.Message) error {
		if handled.Add(1) == int64(b.N) {
			cancel()
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
