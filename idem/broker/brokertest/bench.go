package brokertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/internal/postgres"
)

// atOnce is the number of deliveries that a benchmark has in flight.
const atOnce = 64

// Benchmark delivers the same events to a relay that publishes to p and to an inbox
// with a Postgres that commits to the disk, in alternating rounds. It reports the deliveries
// a second that each has answered, and the ratio of the relay's to the inbox's.
func Benchmark(b *testing.B, p broker.Publisher) {
	cluster := &postgres.Cluster{Durable: true}
	if err := cluster.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cluster.Close() })
	pool, err := openPool(b.Context(), cluster.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if err := idem.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	inbox, toBroker := idem.NewInbox(pool, newProvider(nil)), relay.New(newProvider(nil), p, secret)
	inbox.Logger, toBroker.Logger = nil, nil
	race(b, &rival{name: "inbox", handler: inbox}, &rival{name: "relay", handler: toBroker})
}

// rival answers deliveries.
type rival struct {
	name    string
	handler http.Handler
	url     string
	client  *http.Client
	sent    int
	took    time.Duration
}

// race has rivals answer b.N deliveries each.
func race(b *testing.B, rivals ...*rival) {
	for _, r := range rivals {
		server := httptest.NewServer(r.handler)
		b.Cleanup(server.Close)
		r.url, r.client = server.URL, server.Client()
		r.client.Transport.(*http.Transport).MaxIdleConnsPerHost = atOnce
		r.run(b, 20*atOnce)
		r.took = 0
	}
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(40*atOnce, b.N-done)
		for _, r := range rivals {
			r.run(b, n)
		}
		done += n
	}
	for _, r := range rivals {
		b.ReportMetric(float64(b.N)/r.took.Seconds(), r.name+"/s")
	}
	b.ReportMetric(rivals[0].took.Seconds()/rivals[1].took.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

func (r *rival) run(b *testing.B, n int) {
	start := time.Now()
	var next atomic.Int64
	var deliveries sync.WaitGroup
	for range atOnce {
		deliveries.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := r.deliver(b.Context(), r.sent+int(i)); err != nil {
					b.Error(r.name, ": ", err)
				}
			}
		})
	}
	deliveries.Wait()
	r.took += time.Since(start)
	r.sent += n
}

// text makes a body as long as a provider's.
var text = strings.Repeat("x", 1500)

func (r *rival) deliver(ctx context.Context, n int) error {
	body := note{ID: fmt.Sprintf("evt_%d", n), Type: "paid", Order: fmt.Sprintf("order-%d", n%10_000), Text: text}.body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("token", token)
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d %s, %w", resp.StatusCode, answer, err)
	}
	return nil
}
