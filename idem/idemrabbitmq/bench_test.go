package idemrabbitmq_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

// BenchmarkRelay compares a relay with a queue that is on disk when it confirms with an
// inbox, for both kinds of queues.
func BenchmarkRelay(b *testing.B) {
	for _, kind := range []string{"quorum", "classic"} {
		b.Run(kind, func(b *testing.B) {
			url := sharedURL(b)
			queue := declare(b, url, amqp.Table{"x-queue-type": kind})
			brokertest.Benchmark(b, newPublisher(b, dialer(url), "", queue))
		})
	}
}
