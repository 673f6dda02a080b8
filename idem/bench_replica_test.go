//go:build unix

package idem_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/internal/postgres"
)

// BenchmarkReplica compares commits that wait for a replica, on the same machine and
// disk, with those that do not, in alternating rounds. ratio is the rate of the
// former to that of the latter.
func BenchmarkReplica(b *testing.B) {
	primary := &postgres.Cluster{Durable: true}
	if err := primary.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	replica, err := primary.Replica(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []*postgres.Cluster{replica, primary} {
		b.Cleanup(func() {
			if err := c.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	admin, err := pgx.Connect(b.Context(), primary.URL())
	if err != nil {
		b.Fatal(err)
	}
	for name, handler := range map[string]func(*pgxpool.Pool) http.Handler{
		"inline": func(pool *pgxpool.Pool) http.Handler { return newBenchProcessor(pool, bookOrder) },
		"ingest": func(pool *pgxpool.Pool) http.Handler { return newBenchInbox(pool) },
	} {
		for _, at := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/at=%d", name, at), func(b *testing.B) {
				waitFor(b, admin, "")
				pool := shopPool(b, primary.URL(), 0)
				alone, both := serve(b, "alone", handler(pool)), serve(b, "both", handler(pool))
				both.first = 100_000_000
				b.ResetTimer()
				for done := 0; done < b.N; done += 2000 {
					n := min(2000, b.N-done)
					waitFor(b, admin, "")
					alone.run(b, n, at, nil)
					waitFor(b, admin, "*")
					both.run(b, n, at, nil)
				}
				waitFor(b, admin, "")
				b.ReportMetric(alone.took.Seconds()/both.took.Seconds(), "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// waitFor has commits wait for the replicas of these names, from now on.
func waitFor(b *testing.B, admin *pgx.Conn, names string) {
	b.Helper()
	for _, sql := range []string{`alter system set synchronous_standby_names = '` + names + `'`, `select pg_reload_conf()`} {
		if _, err := admin.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	until := `select not exists (select from pg_stat_replication where sync_state <> 'async')`
	if names != "" {
		until = `select exists (select from pg_stat_replication where sync_state = 'sync')`
	}
	for there := false; !there; {
		if err := admin.QueryRow(b.Context(), until).Scan(&there); err != nil {
			b.Fatal(err)
		}
	}
}
