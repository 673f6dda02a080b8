//go:build unix

package idem_test

import (
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
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
	"github.com/paghooks/paghooks/internal/postgres"
)

// updateOrder is the work, the same for all.
const updateOrder = `update orders set paid = paid + 1 where id = $1`

func bookOrder(ctx context.Context, tx pgx.Tx, n *note) error {
	_, err := tx.Exec(ctx, updateOrder, n.Order)
	return err
}

const benchOrders = 10_000

// rival is one of the implementations that are compared.
type rival struct {
	name   string
	url    string
	http   *http.Client
	finish func(events int) // waits until so many are done, if answers do not tell
	pool   *pgxpool.Pool    // if it has another than the rest

	first  int  // the number before its first event's
	same   bool // sends few events again and again
	repeat bool // sends three of ten events that were done a moment ago
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
	start, client, server := time.Now(), clientTime(), serverTime(backends)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range at {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := r.first + r.events + int(i)
				if r.same {
					id = r.first + int(i)%at
				}
				if r.repeat && i%10 >= 7 {
					id -= 133
				}
				body := fmt.Sprintf(`{"id":"evt_%x&%d","type":"paid","order":"order-%d"}`, md5.Sum([]byte(strconv.Itoa(id))), id, id%benchOrders)
				if status, err := r.post(body); err != nil || status != http.StatusOK {
					b.Errorf("%s answered %d, %v", r.name, status, err)
				}
			}
		})
	}
	workers.Wait()
	if r.finish != nil {
		r.finish(r.events + n)
	}
	r.took += time.Since(start)
	r.client += clientTime() - client
	r.server += serverTime(backends) - server
	r.events += n
}

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

// durable is a Postgres that commits to the disk: the one of IDEMTEST_DATABASE_URL, which
// is expected to, or one of our own.
func durable(b *testing.B) string {
	b.Helper()
	if os.Getenv("IDEMTEST_DATABASE_URL") != "" {
		return idemtest.URL(b)
	}
	cluster := &postgres.Cluster{Durable: os.Getenv("MEM") == ""}
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

// shopPool is a pool on a fresh database of a shop, at a distance.
func shopPool(b *testing.B, url string, distance time.Duration) *pgxpool.Pool {
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
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	_, err = pool.Exec(b.Context(), `
		drop table if exists orders, processed, stored, naive, idem_events, idem_payloads, idem_archive, idem_migrations cascade;
		create table processed (id text primary key, received_at timestamptz not null default now());
		create table stored (id text primary key, received_at timestamptz not null default now(), body bytea);
		create table naive (id text primary key, state text not null default 'pending', received_at timestamptz not null default now(), body bytea);
		create index on naive (received_at) where state = 'pending';
		create table orders (id text primary key, paid int not null default 0) with (fillfactor = 50);
		insert into orders select 'order-' || n from generate_series(0, 9999) n`)
	if err != nil {
		b.Fatal(err)
	}
	if err := idem.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	return pool
}

// source is the provider's events with the work of h.
func source(h idem.Handler[*note]) *notes {
	n := &notes{}
	idem.Handle(&n.Routes, "paid", h)
	return n
}

// race runs rivals in alternating rounds. ratio is the last one's rate to the
// first one's.
func race(b *testing.B, pool *pgxpool.Pool, at int, rivals ...*rival) {
	b.Helper()
	for n, r := range rivals {
		r.first += n * 100_000_000 // no two have an event in common
		r.run(b, 100*at, at, nil)
	}
	pids := backends(pool)
	for _, r := range rivals {
		if r.pool != nil {
			pids = append(pids, backends(r.pool)...)
		}
	}
	for _, r := range rivals {
		r.took, r.client, r.server = 0, 0, 0
	}
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(max(20*at, 4000), b.N-done) // long enough for its end not to matter
		for _, r := range rivals {
			r.run(b, n, at, pids)
		}
		done += n
	}
	b.StopTimer()
	for _, r := range rivals {
		perEvent := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(b.N) }
		b.ReportMetric(float64(b.N)/r.took.Seconds(), r.name+"/s")
		b.ReportMetric(perEvent(r.client), r.name+"-go-µs")
		b.ReportMetric(perEvent(r.server), r.name+"-pg-µs")
	}
	b.ReportMetric(rivals[0].took.Seconds()/rivals[len(rivals)-1].took.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
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
