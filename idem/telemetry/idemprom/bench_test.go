package idemprom_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/telemetry/idemprom"
)

// BenchmarkWorkFirst compares events that are done before the answer, without metrics and with them. Both take
// turns, in batches, on the Postgres that IDEMTEST_DATABASE_URL names, which commits
// to the disk. cost-% is the share that metrics add to an event's time, by the
// medians: other programs disturb those least.
func BenchmarkWorkFirst(b *testing.B) {
	pool := idemtest.Pool(b)
	var fsync string
	if err := pool.QueryRow(b.Context(), `show fsync`).Scan(&fsync); err != nil || fsync != "on" {
		b.Fatalf("fsync is %q, %v: name a Postgres that commits to the disk with IDEMTEST_DATABASE_URL", fsync, err)
	}
	if err := idem.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), `create table orders (id int primary key, paid int not null); insert into orders select n, 0 from generate_series(0, 9999) n`); err != nil {
		b.Fatal(err)
	}
	with := newInbox(pool)
	idemprom.NewCollector().Instrument(with)
	off, on := serve(b, newInbox(pool)), serve(b, with)
	template := string(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_NUMBER")))

	const batch = 10
	var took [2][]float64 // seconds of each batch
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		for turn := range 2 {
			which := (turn + n/batch) % 2 // each goes first as often
			url := []string{off, on}[which]
			start := time.Now()
			for i := n; i < n+batch; i++ {
				post(b, url, strings.Replace(template, "NUMBER", fmt.Sprint(which, "_", i), 1))
			}
			took[which] = append(took[which], time.Since(start).Seconds())
		}
	}
	b.StopTimer()
	before, after := median(took[0]), median(took[1])
	b.ReportMetric(100*(after/before-1), "cost-%")
	b.ReportMetric(before/batch*1e6, "off-µs")
	b.ReportMetric(after/batch*1e6, "on-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCollector measures the cost of one event's metrics, without
// Postgres.
func BenchmarkCollector(b *testing.B) {
	pool, err := pgxpool.New(b.Context(), "postgres://localhost/unused")
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	p := newInbox(pool)
	idemprom.NewCollector().Instrument(p)
	e := asaas.Identify(asaastest.Event("PAYMENT_RECEIVED"))
	o := idem.Observation{Source: "asaas", Stage: idem.StageDelivery, Event: e, Label: e.Type, Outcome: idem.Done, Duration: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(b.Context(), o)
	}
}

func newInbox(pool *pgxpool.Pool) *idem.Inbox {
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, _ *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `update orders set paid = paid + 1 where id = 7`)
		return err
	})
	p := idem.NewInbox(pool, events)
	p.WorkFirst = true
	p.Logger = nil
	return p
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

func serve(b *testing.B, h http.Handler) string {
	b.Helper()
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	return server.URL
}

func post(b *testing.B, url, body string) {
	b.Helper()
	r := asaastest.Request(url, token, []byte(body))
	r.RequestURI = ""
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("the delivery was answered %s, %v", answer.Status, err)
	}
}
