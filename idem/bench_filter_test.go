//go:build unix

package idem_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// filter answers what it has seen answered 200 before, without Postgres: the most
// that a filter in front could save, for it forgets nothing and looks for the id
// only.
type filter struct {
	next http.Handler
	done sync.Map
}

func (f *filter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	id, _, _ := bytes.Cut(body, []byte(`","type"`))
	if _, ok := f.done.Load(string(id)); ok {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"received":true}`)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	f.next.ServeHTTP(answer, r)
	if answer.Code == http.StatusOK {
		f.done.Store(string(id), true)
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// BenchmarkFilter compares deliveries of which three of ten were done before, with
// such a filter and without. ratio is the rate with it to that without.
func BenchmarkFilter(b *testing.B) {
	url := durable(b)
	for _, c := range []struct {
		name    string
		handler func(*pgxpool.Pool) http.Handler
	}{
		{"inline", func(pool *pgxpool.Pool) http.Handler { return newBenchProcessor(pool, bookOrder) }},
		{"ingest", func(pool *pgxpool.Pool) http.Handler { return newBenchInbox(pool) }},
	} {
		for _, at := range []int{16, 64} {
			b.Run(fmt.Sprintf("%s/at=%d", c.name, at), func(b *testing.B) {
				pool := shopPool(b, url, 0)
				without, with := serve(b, "without", c.handler(pool)), serve(b, "with", &filter{next: c.handler(pool)})
				without.repeat, with.repeat = true, true
				race(b, pool, at, without, with)
			})
		}
	}
}
