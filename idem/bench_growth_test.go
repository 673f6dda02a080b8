//go:build unix

package idem_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// BenchmarkGrowth reports what storing an event, claiming it and its whole work
// cost with nothing, a million and more done events in the table:
//
//	go test -run '^$' -bench Growth -benchtime 20000x ./idem
//	GROWTH=10000000 go test -run '^$' -bench Growth -benchtime 20000x -timeout 30m ./idem
//
// The processor time of Postgres is the number to compare: the disk of a shared
// machine has moods.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{0, 1_000_000}
	if more, err := strconv.Atoi(os.Getenv("GROWTH")); err == nil {
		sizes = append(sizes, more)
	}
	url := durable(b)
	for _, size := range sizes {
		prepared := false // b.Run calls back more than once
		b.Run(fmt.Sprintf("done=%d", size), func(b *testing.B) {
			g := newGrowth(b, url)
			if !prepared {
				g.prefill(b, size)
				prepared = true
			}
			g.measure(b)
		})
	}
}

// growth is an inbox on tables that have grown.
type growth struct {
	pool    *pgxpool.Pool
	inbox   *idem.Inbox
	handled chan struct{}
}

func newGrowth(b *testing.B, url string) *growth {
	b.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	source := &notes{}
	idem.Handle(&source.Routes, "paid", nothing)
	g := &growth{pool: pool, inbox: idem.NewInbox(pool, source), handled: make(chan struct{}, 1<<22)}
	g.inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done {
			g.handled <- struct{}{}
		}
	}
	return g
}

// prefill makes new tables with events that are done. Their ids are random, as
// Asaas's are, and so are the places in the index that new ones go to.
func (g *growth) prefill(b *testing.B, done int) {
	b.Helper()
	g.exec(b, `drop table if exists idem_events, idem_payloads, idem_claims, idem_migrations`)
	if err := idem.Migrate(b.Context(), g.pool); err != nil {
		b.Fatal(err)
	}
	for _, sql := range []string{
		`alter table idem_events drop constraint idem_events_pkey`, // an index is made faster at the end
		fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at)
			select 'notes//evt_' || md5(n::text) || '&' || n, 'paid', 'pay_' || n / 3, 'done', now() - interval '1 day'
			from generate_series(1, %d) n`, done),
		`alter table idem_events add primary key (event)`,
		`vacuum analyze idem_events`, `vacuum analyze idem_payloads`, `checkpoint`,
	} {
		g.exec(b, sql)
	}
}

func (g *growth) exec(b *testing.B, sql string) {
	b.Helper()
	if _, err := g.pool.Exec(b.Context(), sql); err != nil {
		b.Fatalf("%v in %s", err, sql)
	}
}

// growthWarm is how many events come before those that are measured: the pages
// that every event needs are in memory then.
const growthWarm = 1000

var growthRuns atomic.Int64

func (g *growth) measure(b *testing.B) {
	b.Helper()
	for _, n := range []int{growthWarm, b.N} {
		run := growthRuns.Add(1)
		runtime.GC()
		store := g.spend(func() { g.store(b, run, n) })
		heads := 0
		claims := g.spend(func() { heads = g.claim(b) })
		if heads < n/3 {
			b.Fatalf("%d of %d events were claimed", heads, n)
		}
		g.exec(b, `delete from idem_claims`)
		g.exec(b, `vacuum analyze idem_events`)
		work := g.spend(func() { g.work(b, n) })
		if n != b.N {
			continue
		}
		store.report(b, "store", n)
		claims.report(b, "claim", heads)
		work.report(b, "work", n)
		b.ReportMetric(0, "ns/op")
	}
}

// spending is the time that something took, on the clock and in Postgres.
type spending struct{ took, server time.Duration }

func (s spending) report(b *testing.B, name string, events int) {
	b.Helper()
	b.ReportMetric(float64(s.took.Microseconds())/float64(events), name+"-µs")
	b.ReportMetric(float64(s.server.Microseconds())/float64(events), name+"-pg-µs")
}

func (g *growth) spend(f func()) spending {
	pids := backends(g.pool)
	start, server := time.Now(), serverTime(pids)
	f()
	return spending{time.Since(start), serverTime(pids) - server}
}

// store has 16 deliverers at once.
func (g *growth) store(b *testing.B, run int64, n int) {
	b.Helper()
	var next atomic.Int64
	var deliverers sync.WaitGroup
	for range 16 {
		deliverers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				e := booking(fmt.Sprintf("evt_%08x%024x&%d", uint32(i*2654435761), run, i), fmt.Sprintf("pay_%d_%d", run, i/3))
				if outcome, err := g.inbox.Accept(b.Context(), e); outcome != idem.Pending || err != nil {
					b.Errorf("Accept = %s, %v", outcome, err)
				}
			}
		})
	}
	deliverers.Wait()
}

// claim takes the first event of each entity, and returns how many those are.
func (g *growth) claim(b *testing.B) (claimed int) {
	b.Helper()
	for after := ""; ; {
		queues, err := idem.ClaimHeads(b.Context(), g.inbox, after, 40)
		if err != nil {
			b.Fatal(err)
		}
		if len(queues) == 0 {
			return claimed
		}
		claimed += len(queues)
		after = queues[len(queues)-1]
	}
}

func (g *growth) work(b *testing.B, n int) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.inbox.Run(ctx) }()
	for range n {
		<-g.handled
	}
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
