package postgres

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestCommitsOutliveACrash(t *testing.T) {
	t.Parallel()
	c := started(t, new(Cluster))
	for round := 1; round <= 2; round++ {
		doomed := halfway(t, c, round)
		check(t, c.Crash(t.Context()))
		if err := doomed.Commit(t.Context()); err == nil {
			t.Error("a transaction was committed after the crash")
		}
		check(t, c.Start(t.Context()))
		if got := ask(t, c, "select string_agg(id::text, ',') from orders"); got != "1,2"[:2*round-1] {
			t.Errorf("after crash %d there are the orders %s", round, got)
		}
	}
}

func TestCommittedRowsOutliveTheKillOfThePostmaster(t *testing.T) {
	t.Parallel()
	c := started(t, new(Cluster))
	doomed := halfway(t, c, 1)
	check(t, c.Kill(t.Context()))
	check(t, c.Start(t.Context()))
	if err := doomed.Commit(t.Context()); err == nil {
		t.Error("a transaction was committed after the crash")
	}
	if got := ask(t, c, "select string_agg(id::text, ',') from orders"); got != "1" {
		t.Errorf("there are the orders %s", got)
	}
}

// The log is written every 10 seconds here. If that happens just between the
// commit and the crash, the row is there, and the next round is as good.
func TestAsynchronousCommitIsLostInACrash(t *testing.T) {
	t.Parallel()
	c := started(t, &Cluster{Settings: map[string]string{"wal_writer_delay": "10s", "autovacuum": "off", "bgwriter_lru_maxpages": "0"}})
	lost := ""
	for round := 1; round <= 5 && lost != "1"; round++ {
		conn := dial(t, c.URL())
		_, err := conn.Exec(t.Context(), "drop table if exists orders; create table orders (id int); insert into orders values (1)")
		check(t, err)
		_, err = conn.Exec(t.Context(), "set synchronous_commit = off; insert into orders values (2)")
		check(t, err)
		check(t, c.Crash(t.Context()))
		check(t, c.Start(t.Context()))
		lost = ask(t, c, "select string_agg(id::text, ',') from orders")
	}
	if lost != "1" {
		t.Errorf("there are the orders %s after the crash", lost)
	}
}

func TestDurableWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	c := started(t, &Cluster{Durable: true})
	got := ask(t, c, "select string_agg(name || ' ' || setting, ', ' order by name) from pg_settings "+
		"where name in ('fsync', 'full_page_writes', 'synchronous_commit')")
	if got != "fsync on, full_page_writes on, synchronous_commit on" {
		t.Errorf("settings: %s", got)
	}
	if place := memory(); place != "" && strings.HasPrefix(c.dir, place) {
		t.Errorf("its data is in memory: %s", c.dir)
	}
}

// started starts a cluster for the duration of the test.
func started(t *testing.T, c *Cluster) *Cluster {
	t.Helper()
	check(t, c.Start(t.Context()))
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// halfway commits one order, and leaves another in an open transaction.
func halfway(t *testing.T, c *Cluster, round int) pgx.Tx {
	t.Helper()
	conn := dial(t, c.URL())
	_, err := conn.Exec(t.Context(), "create table if not exists orders (id int)")
	check(t, err)
	_, err = conn.Exec(t.Context(), "insert into orders values ($1)", round)
	check(t, err)
	tx, err := conn.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "insert into orders values (0)")
	check(t, err)
	return tx
}

func ask(t *testing.T, c *Cluster, query string) (answer string) {
	t.Helper()
	check(t, dial(t, c.URL()).QueryRow(t.Context(), query).Scan(&answer))
	return answer
}

func dial(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestClusterSaysWhyItDoesNotStart(t *testing.T) {
	for _, test := range []struct{ name, initdb, postgres, want string }{
		{"initdb fails", "echo no room >&2; exit 1", "", "is not up: no room"},
		{"postgres fails", `mkdir -p "$2"`, "echo no memory >&2; exit 1", "is not up: no memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bin := openDir(t)
			script(t, bin, "initdb", test.initdb)
			script(t, bin, "postgres", test.postgres)
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			c := new(Cluster)
			err := c.Start(t.Context())
			if err == nil || IsAbsent(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
				t.Errorf("%s is still there", c.dir)
			}
		})
	}
}

func TestStartThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again := started(t, new(Cluster))
	check(t, again.Crash(t.Context()))
	for _, c := range []*Cluster{{}, again} {
		if err := c.Start(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there", c.dir)
		}
	}
}

func TestCrashNeedsARunningCluster(t *testing.T) {
	t.Parallel()
	if err := new(Cluster).Crash(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := new(Cluster).Kill(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestPostgresIsNotBentByTheEnvironment(t *testing.T) {
	for _, name := range []string{"PGPORT", "PGOPTIONS", "PGDATA", "LC_ALL"} {
		t.Setenv(name, "nonsense")
	}
	got := strings.Join(environment(), "\n")
	if strings.Contains(got, "nonsense") || !strings.HasSuffix(got, "\nLC_ALL=C") {
		t.Error(cmp.Diff("LC_ALL=C", got))
	}
}
