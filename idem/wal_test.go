package idem_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/postgres"
)

// walBody is the size in bytes of the bodies of these tests: what Asaas sends of
// a payment, and less than what Postgres compresses.
const walBody = 1500

// logged is the cost of events in Postgres's log, from arrival to done.
type logged struct {
	pool   *pgxpool.Pool
	inbox  *idem.Inbox
	done   chan struct{}
	events int
	lane   int // events of each entity
}

func leaveIt(context.Context, pgx.Tx, *note) error { return nil }

// newLogged starts an inbox with its workers on a Postgres that logs changes
// and no images of pages: how many of those there are depends on how often it
// makes checkpoints, and not on the events.
func newLogged(t testing.TB, lane int) *logged {
	t.Helper()
	cluster := &postgres.Cluster{}
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16
	l := &logged{lane: lane, done: make(chan struct{}, 1<<20)}
	if l.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
	if err := idem.Migrate(t.Context(), l.pool); err != nil {
		t.Fatal(err)
	}
	if got := logOne[string](t, l, `select current_setting('full_page_writes')`); got != "off" {
		t.Fatalf("full_page_writes is %s", got)
	}
	for _, sql := range []string{`alter system set autovacuum = off`, `select pg_reload_conf()`} {
		if _, err := l.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", leaveIt) // what a handler writes is its own
	l.inbox = idem.NewInbox(l.pool, source)
	l.inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done {
			l.done <- struct{}{}
		}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- l.inbox.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

func logOne[V any](t testing.TB, l *logged, sql string, args ...any) (v V) {
	t.Helper()
	if err := l.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// run has n events delivered, so many at once, and waits until they are done.
func (l *logged) run(t testing.TB, n, at int) {
	t.Helper()
	var next atomic.Int64
	var deliverers sync.WaitGroup
	for range at {
		deliverers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := fmt.Sprintf("evt_05b708f961d739ea7eba7e4db318f621&%d", l.events+int(i))
				body := fmt.Appendf(nil, `{"id":%q,"type":"paid","order":"pay_%010d","pad":"`, id, (l.events+int(i))/l.lane)
				body = append(body, strings.Repeat("x", walBody-len(body)-2)+`"}`...)
				if outcome, err := l.inbox.Accept(t.Context(), identify(body)); outcome != idem.Pending || err != nil {
					t.Errorf("Accept = %s, %v", outcome, err)
					l.done <- struct{}{}
				}
			}
		})
	}
	deliverers.Wait()
	for range n {
		<-l.done
	}
	l.events += n
}

const logEnd = `select pg_current_wal_insert_lsn()::text`

// cost is the bytes of log that each of n events takes beyond its body, and
// where they go, as far as this Postgres tells.
func (l *logged) cost(t testing.TB, n, at int) (perEvent float64, split string) {
	t.Helper()
	start := logOne[string](t, l, logEnd)
	l.run(t, n, at)
	end := logOne[string](t, l, logEnd)
	total := logOne[float64](t, l, `select pg_wal_lsn_diff($2::pg_lsn, $1::pg_lsn)::float8`, start, end)
	if logOne[bool](t, l, `select exists (select from pg_available_extensions where name = 'pg_walinspect')`) {
		if _, err := l.pool.Exec(t.Context(), `create extension if not exists pg_walinspect`); err != nil {
			t.Fatal(err)
		}
		split = logOne[string](t, l, `select string_agg(format('%s: %s records, %s B', "resource_manager/record_type",
			round(count / $3::numeric, 2), round(combined_size::numeric / $3)), E'\n' order by combined_size desc)
			from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true) where count > 0`, start, end, n)
	}
	return total/float64(n) - walBody, split
}

// maxLog is the size that an event of the inbox may take from arrival to done; a quarter
// more where events of an entity arrive together, and are held back a few times.
const maxLog = 2048

func TestEventOfAnInboxWritesLittleLogBeyondItsBody(t *testing.T) {
	t.Parallel()
	for name, lane := range map[string]int{"one event of each entity": 1, "three events of each entity, all at once": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogged(t, lane)
			l.run(t, 200, 16) // statements are prepared and the first pages are there
			perEvent, split := l.cost(t, 1000, 16)
			t.Logf("%.0f bytes of WAL for each event beyond its body; for each event:\n%s", perEvent, split)
			most := float64(maxLog)
			if lane > 1 {
				most += maxLog / 4
			}
			if perEvent <= 0 || perEvent >= most {
				t.Errorf("each event takes %.0f bytes of WAL beyond its body, want less than %.0f", perEvent, most)
			}
		})
	}
}
