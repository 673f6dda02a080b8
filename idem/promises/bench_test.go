//go:build unix

package promises_test

import (
	"context"
	"crypto/md5"
	"encoding/json"
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
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/postgres"
)

// BenchmarkInline compares inline mode with the usual four round trips by hand. ratio, in each of these, is
// the last one's rate of events to the first one's, in alternating rounds on one durable Postgres.
func BenchmarkInline(b *testing.B) {
	everywhere(b, []int{1, 16, 64}, func(b *testing.B, pool *pgxpool.Pool, at int) {
		race(b, pool, at, serve(b, "by-hand", byHand{pool, fourTrips}), serve(b, "paghooks", newBenchFirst(pool, bookOrder)))
	})
}

// BenchmarkDuplicates compares events that come again with new ones.
func BenchmarkDuplicates(b *testing.B) {
	everywhere(b, []int{1, 16, 64}, func(b *testing.B, pool *pgxpool.Pool, at int) {
		again := serve(b, "again", newBenchFirst(pool, bookOrder))
		again.same = true
		race(b, pool, at, serve(b, "new", newBenchFirst(pool, bookOrder)), again)
	})
}

// BenchmarkIngest compares the inbox's answers with one INSERT for each request.
func BenchmarkIngest(b *testing.B) {
	everywhere(b, []int{1, 16, 64}, func(b *testing.B, pool *pgxpool.Pool, at int) {
		race(b, pool, at, serve(b, "insert", byHand{pool, oneInsert}), serve(b, "inbox", newBenchInbox(pool)))
	})
}

// BenchmarkEndToEnd compares inline mode with an inbox: stored, processed, done.
func BenchmarkEndToEnd(b *testing.B) {
	everywhere(b, []int{16, 64}, func(b *testing.B, pool *pgxpool.Pool, at int) {
		race(b, pool, at, serve(b, "inline", newBenchFirst(pool, bookOrder)), work(b, newBenchInbox(pool)))
	})
}

// BenchmarkOutbox compares inline mode with the same handler that also emits a message; nothing is published
// meanwhile.
func BenchmarkOutbox(b *testing.B) {
	everywhere(b, []int{16}, func(b *testing.B, pool *pgxpool.Pool, at int) {
		outbox := outbox.New(pool, "shop", nil)
		emitting := newBenchFirst(pool, func(ctx context.Context, tx pgx.Tx, n *note) error {
			if err := bookOrder(ctx, tx, n); err != nil {
				return err
			}
			return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: n.Order, Body: []byte(n.ID)})
		})
		race(b, pool, at, serve(b, "inline", newBenchFirst(pool, bookOrder)), serve(b, "emitting", emitting))
	})
}

// everywhere runs a benchmark at different distances to Postgres, with so many deliveries at once.
func everywhere(b *testing.B, ats []int, do func(b *testing.B, pool *pgxpool.Pool, at int)) {
	url := durable(b)
	for _, distance := range []time.Duration{0, time.Millisecond} {
		for _, at := range ats {
			b.Run(fmt.Sprintf("distance=%s/at=%d", distance, at), func(b *testing.B) { do(b, shopPool(b, url, distance), at) })
		}
	}
}

// bookOrder is the work, the same for all.
func bookOrder(ctx context.Context, tx pgx.Tx, n *note) error {
	_, err := tx.Exec(ctx, `update orders set paid = paid + 1 where id = $1`, n.Order)
	return err
}

// newBenchFirst is an inbox that works first and logs nothing.
func newBenchFirst(pool *pgxpool.Pool, h idem.Handler[*note]) *idem.Inbox {
	p := newFirst(pool, source(h))
	p.Logger = nil
	return p
}

// newBenchInbox is an inbox that logs nothing.
func newBenchInbox(pool *pgxpool.Pool) *idem.Inbox {
	i := idem.NewInbox(pool, source(bookOrder))
	i.Logger = nil
	return i
}

// source is the provider's events with the work of h.
func source(h idem.Handler[*note]) *notes {
	n := &notes{}
	idem.Handle(&n.Routes, "paid", h)
	return n
}

// byHand is the code of a good engineer on pgx; do is what it does with an event.
type byHand struct {
	pool *pgxpool.Pool
	do   func(ctx context.Context, pool *pgxpool.Pool, n *note, body []byte) error
}

func (h byHand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	if err := h.do(ctx, h.pool, &n, body); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"received":true}`)
}

// fourTrips is the usual way: BEGIN; INSERT … ON CONFLICT DO NOTHING; the work; COMMIT.
func fourTrips(ctx context.Context, pool *pgxpool.Pool, n *note, _ []byte) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into processed (id) values ($1) on conflict do nothing`, n.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return bookOrder(ctx, tx, n)
	})
}

// oneInsert stores events first: one committed INSERT for each request.
func oneInsert(ctx context.Context, pool *pgxpool.Pool, n *note, body []byte) error {
	_, err := pool.Exec(ctx, `insert into stored (id, body) values ($1, $2) on conflict do nothing`, n.ID, body)
	return err
}

// rival is one of the implementations that are compared.
type rival struct {
	name   string
	url    string
	http   *http.Client
	finish func(events int) // waits until so many are done, if answers do not tell

	first  int  // the number before its first event's
	same   bool // sends few events again and again
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
				body := fmt.Sprintf(`{"id":"evt_%x&%d","type":"paid","order":"order-%d"}`, md5.Sum([]byte(strconv.Itoa(id))), id, id%10_000)
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
	cluster := &postgres.Cluster{Durable: true}
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
		drop table if exists orders, processed, stored, idem_events, idem_payloads, idem_archive, idem_migrations cascade;
		create table processed (id text primary key, received_at timestamptz not null default now());
		create table stored (id text primary key, received_at timestamptz not null default now(), body bytea);
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
