//go:build unix

package idem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// handWritten is what a good engineer writes on pgx, in the four round trips
// that pgx.Tx takes: BEGIN; INSERT … ON CONFLICT DO NOTHING; UPDATE; COMMIT.
type handWritten struct{ pool *pgxpool.Pool }

func (h handWritten) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
	defer cancel()
	err = pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into processed (id) values ($1) on conflict do nothing`, n.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return bookOrder(ctx, tx, &n)
	})
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"received":true}`)
}

// bookOrder is the work, the same for both.
func bookOrder(ctx context.Context, tx pgx.Tx, n *note) error {
	_, err := tx.Exec(ctx, `update orders set paid = paid + 1 where id = $1`, n.Order)
	return err
}

const benchOrders = 10_000

// rival is one of the implementations that are compared.
type rival struct {
	name   string
	url    string
	http   *http.Client
	events int

	took, client, server time.Duration // wall clock, and processor time here and in Postgres
}

func (r *rival) post(body string) (int, error) {
	req, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("token", "right")
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// run sends n events, at so many at once, and adds up what they cost.
func (r *rival) run(b *testing.B, n, at int, backends []uint32) {
	b.Helper()
	r.runAnd(b, n, at, backends, func(int) {})
}

// runAnd is run for a rival that is done when settle says so.
func (r *rival) runAnd(b *testing.B, n, at int, backends []uint32, settle func(events int)) {
	b.Helper()
	start, client, server := time.Now(), clientTime(), serverTime(backends)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range at {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := r.events + int(i)
				body := fmt.Sprintf(`{"id":"evt_05b708f961d739ea7eba7e4db318f621&%d","type":"paid","order":"order-%d"}`, id, id%benchOrders)
				if status, err := r.post(body); err != nil || status != http.StatusOK {
					b.Errorf("%s answered %d, %v", r.name, status, err)
				}
			}
		})
	}
	workers.Wait()
	settle(r.events + n)
	r.took += time.Since(start)
	r.client += clientTime() - client
	r.server += serverTime(backends) - server
	r.events += n
}

func (r *rival) reset() { r.took, r.client, r.server = 0, 0, 0 }

// clientTime is the processor time of this process.
func clientTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverTime is the processor time of Postgres's processes; 0 where the system
// does not tell.
func serverTime(backends []uint32) (total time.Duration) {
	for _, pid := range backends {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			return 0
		}
		var ns int64
		_, _ = fmt.Sscan(string(stat), &ns)
		total += time.Duration(ns)
	}
	return total
}

func backends(pool *pgxpool.Pool) (pids []uint32) {
	for _, conn := range pool.AcquireAllIdle(context.Background()) {
		pids = append(pids, conn.Conn().PgConn().PID())
		conn.Release()
	}
	return pids
}

// durable is a Postgres that commits to the disk: the one of DATABASE_URL, which
// is expected to, or one of our own.
func durable(b *testing.B) string {
	b.Helper()
	if os.Getenv("DATABASE_URL") != "" {
		return idemtest.URL(b)
	}
	cluster := &idemtest.Cluster{Durable: os.Getenv("MEM") == ""}
	if err := cluster.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			b.Error(err)
		}
	})
	return cluster.URL()
}

// BenchmarkInline compares inline mode with the same work written by hand, in
// alternating rounds on one durable Postgres. ratio is ours to theirs in events
// per second: above 1 we are faster.
func BenchmarkInline(b *testing.B) {
	url := durable(b)
	for _, c := range []struct {
		at       int
		distance time.Duration // what a round trip takes longer
	}{{1, 0}, {16, 0}, {64, 0}, {1, time.Millisecond}, {16, time.Millisecond}, {64, time.Millisecond}} {
		b.Run(fmt.Sprintf("at=%d/distance=%s", c.at, c.distance), func(b *testing.B) { compare(b, url, c.at, c.distance) })
	}
}

func compare(b *testing.B, url string, at int, distance time.Duration) {
	b.Helper()
	pool, theirs, ours := rivals(b, url, distance)
	theirs.run(b, 100*at, at, nil)
	ours.run(b, 100*at, at, nil)
	pids := backends(pool)
	theirs.reset()
	ours.reset()
	warm := ours.events
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(20*at, b.N-done)
		theirs.run(b, n, at, pids)
		ours.run(b, n, at, pids)
		done += n
	}
	b.StopTimer()
	events := float64(ours.events - warm)
	perEvent := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / events }
	b.ReportMetric(events/theirs.took.Seconds(), "theirs/s")
	b.ReportMetric(events/ours.took.Seconds(), "ours/s")
	b.ReportMetric(theirs.took.Seconds()/ours.took.Seconds(), "ratio")
	b.ReportMetric(perEvent(theirs.client), "theirs-go-µs")
	b.ReportMetric(perEvent(ours.client), "ours-go-µs")
	b.ReportMetric(perEvent(theirs.server), "theirs-pg-µs")
	b.ReportMetric(perEvent(ours.server), "ours-pg-µs")
	b.ReportMetric(0, "ns/op")
}

// distant is a connection whose round trips take longer.
type distant struct {
	net.Conn
	distance time.Duration
	sent     atomic.Bool
}

func (d *distant) Write(p []byte) (int, error) {
	d.sent.Store(true)
	return d.Conn.Write(p)
}

func (d *distant) Read(p []byte) (int, error) {
	if d.sent.Swap(false) {
		<-time.After(d.distance)
	}
	return d.Conn.Read(p)
}

func rivals(b *testing.B, url string, distance time.Duration) (pool *pgxpool.Pool, theirs, ours *rival) {
	b.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 16
	if dial := config.ConnConfig.DialFunc; distance > 0 {
		config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &distant{Conn: conn, distance: distance}, err
		}
	}
	pool, err = pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	_, err = pool.Exec(b.Context(), `
		drop table if exists orders, processed, idem_events, idem_payloads, idem_migrations;
		create table processed (id text primary key, received_at timestamptz not null default now());
		create table orders (id text primary key, paid int not null default 0) with (fillfactor = 50);
		insert into orders select 'order-' || n from generate_series(0, 9999) n`)
	if err != nil {
		b.Fatal(err)
	}
	if err := idem.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", bookOrder)
	return pool, serve(b, "hand-written", handWritten{pool}), serve(b, "paghooks", idem.NewProcessor(pool, source))
}

// serve puts a handler behind a real server and gives it a client of its own,
// which keeps its connections.
func serve(b *testing.B, name string, h http.Handler) *rival {
	b.Helper()
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	client := server.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	return &rival{name: name, url: server.URL, http: client}
}

// BenchmarkMemory reports what is in use after b.N events, and grew since the
// first tenth of them: run it with -benchtime 100000x.
func BenchmarkMemory(b *testing.B) {
	url := durable(b)
	_, _, ours := rivals(b, url, 0)
	ours.run(b, max(1, b.N/10), 16, nil)
	before := heap()
	b.ResetTimer()
	ours.run(b, b.N, 16, nil)
	b.StopTimer()
	after := heap()
	b.ReportMetric(float64(after)/(1<<20), "MB")
	b.ReportMetric(float64(after-before)/float64(b.N), "grown-B/event")
}
