//go:build long && unix

package console_test

import (
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/internal/postgres"
)

// A stopped process keeps its connections, and answers nothing: no statement_timeout ends a statement then, nor
// does TCP.
func TestEachPageAnswersInSecondsWhileTheServerIsStopped(t *testing.T) {
	t.Parallel()
	c := &postgres.Cluster{}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	answersInSeconds(t, c.URL(), "the server is stopped", func(t *testing.T, pool *pgxpool.Pool, _ *server) {
		const all = `
select split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int union all
select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() union all
select pg_backend_pid()`
		rows, err := pool.Query(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
	})
}
