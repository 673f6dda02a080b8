package brokertest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/internal/postgres"
)

// atOnce is the number of deliveries that a benchmark has in flight.
const atOnce = 64

// Benchmark delivers the same events to a relay that publishes to p and to an inbox
// with a Postgres that commits to the disk, in alternating rounds. It reports the ratio of
// the deliveries a second that the relay has answered to the inbox's.
func Benchmark(b *testing.B, p broker.Publisher) {
	s := &shop{TB: b, queue: Queue{Publisher: p}, provider: newProvider(), changed: make(chan struct{}, 1)}
	s.ownDatabase(postgres.Cluster{Durable: true})
	inbox, relay := s.serve(s.newInbox()), s.serve(s.newRelay())
	s.race(inbox, 0, 20*atOnce)
	s.race(relay, 0, 20*atOnce)
	var inboxTook, relayTook time.Duration
	for from := 20 * atOnce; from < b.N+20*atOnce; from += 40 * atOnce {
		inboxTook += s.race(inbox, from, 40*atOnce)
		relayTook += s.race(relay, from, 40*atOnce)
	}
	b.ReportMetric(inboxTook.Seconds()/relayTook.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// race delivers so many notes, as long as a provider's.
func (s *shop) race(url string, from, count int) (took time.Duration) {
	start := time.Now()
	next := make(chan int)
	var deliveries sync.WaitGroup
	for range atOnce {
		deliveries.Go(func() {
			for n := range next {
				note := note{ID: fmt.Sprint("evt_", n), Type: "paid", Order: fmt.Sprint("order-", n%10_000), Text: strings.Repeat("x", 1500)}
				if status, answer, err := s.post(s.Context(), url, note); err != nil || status != http.StatusOK {
					s.Errorf("%s answered %d %s, %v, want 200", url, status, answer, err)
				}
			}
		})
	}
	for n := range count {
		next <- from + n
	}
	close(next)
	deliveries.Wait()
	return time.Since(start)
}
