//go:build long

package postgres

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name, act string
		signal    syscall.Signal
	}{
		{name: "when main returns", act: "return"},
		{name: "after os.Exit", act: "exit"},
		{name: "after log.Fatal", act: "fatal"},
		{name: "after a panic", act: "panic"},
		{name: "after Ctrl-C", act: "stay", signal: syscall.SIGINT},
		{name: "after kill -9", act: "stay", signal: syscall.SIGKILL},
		{name: "when it ends between a crash and the next start", act: "crashed"},
		{name: "when it ends before Postgres is up", act: "hasty"},
		{name: "when it ends before a copy is up", act: "copying"},
		{name: "while its replica runs", act: "replicated"},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			a := play(t, end.act, "IDEMTEST_CACHE="+t.TempDir())
			dir := a.line(t)
			if _, err := os.Stat(dir); end.act == "stay" && err != nil {
				t.Error(err)
			}
			if end.signal != 0 {
				check(t, a.Process.Signal(end.signal))
			}
			a.awaitFamily(t)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", dir, err)
			}
		})
	}
}

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

func TestPromotedReplicaTakesWrites(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, new(Cluster))
	run(t, primary, "insert into orders values (1)")
	check(t, replica.CatchUp(t.Context(), primary))
	if _, err := dial(t, replica.URL()).Exec(t.Context(), "insert into orders values (2)"); err == nil {
		t.Error("a replica takes writes")
	}
	check(t, primary.Crash(t.Context()))
	check(t, replica.Promote(t.Context()))
	run(t, replica, "insert into orders values (3)")
	if got := orders(t, replica); got != "0,1,3" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestPromotedReplicaLacksWhatItHasNotReceived(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, new(Cluster))
	run(t, replica, "alter system set primary_conninfo = ''")
	run(t, replica, "select pg_reload_conf()")
	for ask(t, primary, "select count(*)::text from pg_stat_replication") != "0" {
		check(t, pause(t.Context()))
	}
	run(t, primary, "insert into orders values (1)")
	check(t, replica.Promote(t.Context()))
	if got := orders(t, replica); got != "0" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestReplicaOfAReplicaThatWasPromotedFollows(t *testing.T) {
	t.Parallel()
	_, second := pair(t, new(Cluster))
	check(t, second.Promote(t.Context()))
	third, err := second.Replica(t.Context())
	check(t, err)
	t.Cleanup(func() { check(t, third.Close()) })
	run(t, second, "insert into orders values (1)")
	check(t, third.CatchUp(t.Context(), second))
	if got := orders(t, third); got != "0,1" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestReplicaCrashesAndFollowsAgain(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, new(Cluster))
	check(t, replica.Crash(t.Context()))
	run(t, primary, "insert into orders values (1)")
	check(t, replica.Start(t.Context()))
	check(t, replica.CatchUp(t.Context(), primary))
	if got := orders(t, replica); got != "0,1" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestReplicaNeedsAPrimary(t *testing.T) {
	t.Parallel()
	if _, err := new(Cluster).Replica(t.Context()); err == nil {
		t.Error("a replica of a cluster that does not run")
	}
	if err := started(t, new(Cluster)).Promote(t.Context()); err == nil {
		t.Error("a cluster that is no replica was promoted")
	}
}
