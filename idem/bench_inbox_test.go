//go:build unix

package idem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// oneInsert is what a good engineer writes to store events first: one committed
// INSERT for each request.
type oneInsert struct{ pool *pgxpool.Pool }

func (h oneInsert) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || r.Header.Get("token") != "right" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var n note
	if err := json.Unmarshal(body, &n); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, err = h.pool.Exec(context.WithoutCancel(r.Context()), `insert into stored (id, body) values ($1, $2) on conflict do nothing`, n.ID, body)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"received":true}`)
}

func (r *rival) perEvent(b *testing.B) {
	b.Helper()
	events := float64(b.N)
	b.ReportMetric(events/r.took.Seconds(), r.name+"/s")
	b.ReportMetric(float64(r.client.Microseconds())/events, r.name+"-go-µs")
	b.ReportMetric(float64(r.server.Microseconds())/events, r.name+"-pg-µs")
}

// BenchmarkIngest compares the inbox's answers with one INSERT per request, in
// alternating rounds on one durable Postgres.
func BenchmarkIngest(b *testing.B) {
	url := durable(b)
	for _, at := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("at=%d", at), func(b *testing.B) {
			pool, _, _ := rivals(b, url, 0)
			if _, err := pool.Exec(b.Context(), `drop table if exists stored; create table stored (id text primary key, received_at timestamptz not null default now(), body bytea)`); err != nil {
				b.Fatal(err)
			}
			source := &notes{}
			idem.Handle(&source.Routes, "paid", bookOrder)
			race(b, pool, at, serve(b, "insert", oneInsert{pool}), serve(b, "inbox", idem.NewInbox(pool, source)), func(int) {})
		})
	}
}

// race runs two rivals in alternating rounds; settle waits until the second's
// events are done.
func race(b *testing.B, pool *pgxpool.Pool, at int, theirs, ours *rival, settle func(events int)) {
	b.Helper()
	theirs.run(b, 100*at, at, nil)
	ours.run(b, 100*at, at, nil)
	settle(ours.events)
	pids := backends(pool)
	theirs.reset()
	ours.reset()
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(4000, b.N-done)
		theirs.run(b, n, at, pids)
		ours.runAnd(b, n, at, pids, settle)
		done += n
	}
	b.StopTimer()
	theirs.perEvent(b)
	ours.perEvent(b)
	b.ReportMetric(theirs.took.Seconds()/ours.took.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkEndToEnd compares inline mode with the inbox: stored, worked, done.
func BenchmarkEndToEnd(b *testing.B) {
	url := durable(b)
	for _, at := range []int{16, 64} {
		b.Run(fmt.Sprintf("at=%d", at), func(b *testing.B) {
			pool, _, inline := rivals(b, url, 0)
			source := &notes{}
			idem.Handle(&source.Routes, "paid", bookOrder)
			inbox := idem.NewInbox(pool, source)
			done := make(chan struct{}, 1<<20)
			inbox.Observe = func(_ context.Context, o idem.Observation) {
				if o.Outcome == idem.Handled {
					done <- struct{}{}
				}
			}
			ctx, stop := context.WithCancel(b.Context())
			b.Cleanup(stop)
			go inbox.Run(ctx)
			handled := 0
			inline.name = "inline"
			ours := serve(b, "inbox", inbox)
			ours.events = 10_000_000
			inline.events = 10_000_000 * 2
			race(b, pool, at, inline, ours, func(events int) {
				for ; handled < events-10_000_000; handled++ {
					<-done
				}
			})
		})
	}
}
