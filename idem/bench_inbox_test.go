//go:build unix

package idem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// oneInsert stores events first as a good engineer would: one committed
// INSERT for each request.
type oneInsert struct {
	pool  *pgxpool.Pool
	table string
}

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
	_, err = h.pool.Exec(context.WithoutCancel(r.Context()), `insert into `+h.table+` (id, body) values ($1, $2) on conflict do nothing`, n.ID, body)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"received":true}`)
}

// BenchmarkIngest compares the inbox's answers with one INSERT per request, in
// alternating rounds on one durable Postgres.
func BenchmarkIngest(b *testing.B) {
	url := durable(b)
	for _, distance := range []time.Duration{0, time.Millisecond} {
		for _, at := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("distance=%s/at=%d", distance, at), func(b *testing.B) {
				pool := shopPool(b, url, distance)
				race(b, pool, at, serve(b, "insert", oneInsert{pool, "stored"}), serve(b, "inbox", newBenchInbox(pool)))
			})
		}
	}
}

// BenchmarkEndToEnd compares a naive inbox and inline mode with the inbox: stored,
// processed, done. ratio is to the naive one.
func BenchmarkEndToEnd(b *testing.B) {
	url := durable(b)
	for _, distance := range []time.Duration{0, time.Millisecond} {
		for _, at := range []int{16, 64} {
			b.Run(fmt.Sprintf("distance=%s/at=%d", distance, at), func(b *testing.B) {
				pool := shopPool(b, url, distance)
				race(b, pool, at, naiveWork(b, pool), serve(b, "inline", newBenchProcessor(pool, bookOrder)), work(b, newBenchInbox(pool)))
			})
		}
	}
}

// work runs an inbox's workers: it is done with an event when they are.
func work(b *testing.B, inbox *idem.Inbox) *rival {
	b.Helper()
	done := make(chan struct{}, 1<<20)
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done && o.Stage == idem.StageAttempt {
			done <- struct{}{}
		}
	}
	ctx, stop := context.WithCancel(b.Context())
	stopped := make(chan error)
	go func() { stopped <- inbox.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			b.Error(err)
		}
	})
	r, handled := serve(b, "inbox", inbox), 0
	r.finish = func(events int) {
		for ; handled < events; handled++ {
			<-done
		}
	}
	return r
}
