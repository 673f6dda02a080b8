//go:build unix

package idem_test

import (
	"context"
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/postgres"
)

// shape is one form of idem_events with many rows.
type shape struct {
	name      string
	pool      *pgxpool.Pool
	processor *idem.Processor
	inbox     *idem.Inbox
	took      map[string]time.Duration
}

// manyID is the id of event n, as random as Asaas's.
func manyID(n int) string { return fmt.Sprintf("evt_%x&%d", md5.Sum([]byte(strconv.Itoa(n))), n) }

func openShape(b *testing.B, url, name string, rows int) *shape {
	b.Helper()
	admin, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.Exec(b.Context(), `create schema `+name); err != nil {
		b.Fatal(err)
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 16
	config.ConnConfig.RuntimeParams["search_path"] = name
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if err := idem.Migrate(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	for _, sql := range []string{
		`create table orders (id text primary key, paid int not null default 0) with (fillfactor = 50)`,
		`insert into orders select 'order-' || n from generate_series(0, 9999) n`,
	} {
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	fill(b, pool, rows)
	if name == "partitioned" {
		start := time.Now()
		partition(b, pool)
		b.Logf("partitioning took %s", time.Since(start).Round(time.Second))
	}
	if _, err := pool.Exec(b.Context(), `vacuum analyze idem_events`); err != nil {
		b.Fatal(err)
	}
	return &shape{name, pool, newBenchProcessor(pool, bookOrder), newBenchInbox(pool), make(map[string]time.Duration)}
}

func fill(b *testing.B, pool *pgxpool.Pool, rows int) {
	b.Helper()
	for _, sql := range []string{
		`alter table idem_events drop constraint idem_events_pkey`,
		fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at, body_hash)
			select 'notes//evt_' || md5(n::text) || '&' || n, 'paid', 'order-' || n, 'done',
				case when n <= %[1]d / 10 then now() - interval '50 days' else now() end, n
			from generate_series(1, %[1]d) n`, rows),
		`alter table idem_events add primary key (event)`,
	} {
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
}

// all has 16 goroutines accept n events, whose numbers next makes up.
func (s *shape) all(b *testing.B, accept func(context.Context, idem.Event) (idem.Outcome, error), n int, next func() int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			for left.Add(-1) >= 0 {
				id := next()
				e := idem.Event{
					Source: "notes", ID: manyID(id), Type: "paid", Key: "order-" + strconv.Itoa(id%benchOrders),
					Payload: fmt.Appendf(nil, `{"id":%q,"type":"paid","order":"order-%d"}`, manyID(id), id%benchOrders),
				}
				if o, err := accept(b.Context(), e); !o.Acknowledged() || err != nil {
					b.Errorf("%s: %s, %v", s.name, o, err)
				}
			}
		})
	}
	senders.Wait()
}

// BenchmarkManyRows compares idem_events as a plain table with docs/partitioned.sql,
// in alternating rounds, at IDEM_BENCH_ROWS events that are done (100,000 without
// it). Ratios are of the rates of the partitioned table to those of the plain one.
func BenchmarkManyRows(b *testing.B) {
	rows, _ := strconv.Atoi(os.Getenv("IDEM_BENCH_ROWS"))
	if rows == 0 {
		rows = 100_000
	}
	cluster := &postgres.Cluster{Durable: true, Settings: map[string]string{
		"shared_buffers": "2GB", "max_wal_size": "16GB", "maintenance_work_mem": "1GB", "checkpoint_timeout": "30min",
	}}
	if err := cluster.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			b.Error(err)
		}
	})
	shapes := []*shape{openShape(b, cluster.URL(), "plain", rows), openShape(b, cluster.URL(), "partitioned", rows)}
	measures := []struct {
		name string
		do   func(s *shape, n int, next func() int)
		some func() int // of the events that are there; nil for new ones
	}{
		{"new", func(s *shape, n int, next func() int) { s.all(b, s.processor.Accept, n, next) }, nil},
		{"duplicate", func(s *shape, n int, next func() int) { s.all(b, s.processor.Accept, n, next) }, func() int { return rows/5 + rand.IntN(rows/2) }},
		{"inbox", func(s *shape, n int, next func() int) {
			s.all(b, s.inbox.Accept, n, next)
			if err := s.inbox.Drain(b.Context()); err != nil {
				b.Error(err)
			}
		}, nil},
	}
	var numbers atomic.Int64
	numbers.Store(int64(rows))
	fresh := func() int { return int(numbers.Add(1)) }
	b.Run("rates", func(b *testing.B) {
		for _, s := range shapes {
			clear(s.took)
		}
		for done := 0; done < b.N; done += 2000 {
			n := min(2000, b.N-done)
			for _, m := range measures {
				for _, s := range shapes {
					next := m.some
					if next == nil {
						next = fresh
					}
					start := time.Now()
					m.do(s, n, next)
					s.took[m.name] += time.Since(start)
				}
			}
		}
		for name, took := range shapes[0].took {
			b.ReportMetric(took.Seconds()/shapes[1].took[name].Seconds(), name+"-ratio")
		}
		b.ReportMetric(0, "ns/op")
	})
	for _, s := range shapes {
		s.pruneAll(b, rows)
	}
}

// pruneAll forgets the tenth of the events that is old.
func (s *shape) pruneAll(b *testing.B, rows int) {
	b.Helper()
	const size = `
select pg_size_pretty(sum(pg_table_size(oid))) || ' and indexes of ' || pg_size_pretty(sum(pg_indexes_size(oid)))
from pg_class where relkind = 'r' and relname ~ '^idem_events' and relnamespace = current_schema()::regnamespace`
	var sizes string
	if err := s.pool.QueryRow(b.Context(), size).Scan(&sizes); err != nil {
		b.Error(err)
	}
	if _, err := s.processor.Prune(b.Context()); err != nil {
		b.Error(err)
	}
	if _, err := s.pool.Exec(b.Context(), `update idem_prunes set ran_at = ran_at - interval '1 day'`); err != nil {
		b.Error(err)
	}
	start := time.Now()
	if n, err := s.processor.Prune(b.Context()); n != int64(rows/10) || err != nil {
		b.Errorf("%s: Prune = %d, %v, want %d", s.name, n, err, rows/10)
	}
	pruned := time.Now()
	if _, err := s.pool.Exec(b.Context(), `vacuum idem_events`); err != nil {
		b.Error(err)
	}
	b.Logf("%s: %s, pruned in %s, vacuumed in %s", s.name, sizes, pruned.Sub(start).Round(time.Millisecond), time.Since(pruned).Round(time.Millisecond))
}
