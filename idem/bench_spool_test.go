//go:build unix

package idem_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

// BenchmarkSpool compares draining a spool with the inbox's answers to 64 deliverers,
// in alternating rounds on one durable Postgres. ratio is the drain's rate to the
// inbox's. Files have an event each, as when a provider sends one after the other,
// or 64.
func BenchmarkSpool(b *testing.B) {
	url := durable(b)
	for _, perFile := range []int{1, 64} {
		b.Run(fmt.Sprintf("perFile=%d", perFile), func(b *testing.B) {
			const at = 64
			pool := shopPool(b, url, 0)
			ingest := serve(b, "ingest", newBenchInbox(pool))
			ingest.run(b, 100*at, at, nil)
			ingest.took, ingest.events = 0, 0
			ingest.first = 100_000_000
			var took time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; {
				n := min(20_000, b.N-done)
				ingest.run(b, n, at, nil)
				inbox := newBenchInbox(pool)
				inbox.Spool = fillSpool(b, done, n, perFile)
				start := time.Now()
				if err := inbox.AwaitSpool(b.Context()); err != nil {
					b.Fatal(err)
				}
				took += time.Since(start)
				done += n
			}
			b.StopTimer()
			var stored int
			if err := pool.QueryRow(b.Context(), `select count(*) from idem_events where event like 'notes//spooled-%'`).Scan(&stored); err != nil || stored != b.N {
				b.Errorf("%d events are stored, %v, want %d", stored, err, b.N)
			}
			b.ReportMetric(float64(b.N)/ingest.took.Seconds(), "ingest/s")
			b.ReportMetric(float64(b.N)/took.Seconds(), "drain/s")
			b.ReportMetric(ingest.took.Seconds()/took.Seconds(), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// fillSpool is a spool with events, in files of so many.
func fillSpool(b *testing.B, first, events, perFile int) *idem.Spool {
	b.Helper()
	path := filepath.Join(b.TempDir(), "spool")
	dir, err := spool.Open(path, spool.System{})
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; n < events; n += perFile {
		var records [][]byte
		for m := n; m < min(n+perFile, events); m++ {
			id := first + m
			e := identify(fmt.Appendf(nil, `{"id":"spooled-05b708f961d739ea7eba7e4db318f621&%d","type":"paid","order":"order-%d"}`, id, id%benchOrders))
			record, err := idem.Record(e, "", time.Now())
			if err != nil {
				b.Fatal(err)
			}
			records = append(records, record)
		}
		if err := dir.Put(records); err != nil {
			b.Fatal(err)
		}
	}
	kept, err := idem.OpenSpool(path)
	if err != nil {
		b.Fatal(err)
	}
	return kept
}
