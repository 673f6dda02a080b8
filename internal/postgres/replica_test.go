package postgres

import (
	"context"
	"testing"
)

func TestPromotedReplicaTakesWrites(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, new(Cluster))
	execute(t, primary, "insert into orders values (1)")
	check(t, replica.CatchUp(t.Context(), primary))
	if _, err := dial(t, replica.URL()).Exec(t.Context(), "insert into orders values (2)"); err == nil {
		t.Error("a replica takes writes")
	}
	check(t, primary.Crash(t.Context()))
	check(t, replica.Promote(t.Context()))
	execute(t, replica, "insert into orders values (3)")
	if got := orders(t, replica); got != "0,1,3" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestPromotedReplicaLacksWhatItHasNotReceived(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, new(Cluster))
	execute(t, replica, "alter system set primary_conninfo = ''")
	execute(t, replica, "select pg_reload_conf()")
	for ask(t, primary, "select count(*)::text from pg_stat_replication") != "0" {
		check(t, pause(t.Context()))
	}
	execute(t, primary, "insert into orders values (1)")
	check(t, replica.Promote(t.Context()))
	if got := orders(t, replica); got != "0" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestReplicaIsMadeUnderLoad(t *testing.T) {
	t.Parallel()
	primary := started(t, &Cluster{Durable: true})
	execute(t, primary, "create table orders (id int)")
	ctx, stop := context.WithCancel(t.Context())
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		conn := dial(t, primary.URL())
		for ctx.Err() == nil {
			_, _ = conn.Exec(ctx, "begin; insert into orders select generate_series(1, 1000); create table gone (id int); drop table gone; commit")
		}
	}()
	replica, err := primary.Replica(t.Context())
	stop()
	<-busy
	check(t, err)
	t.Cleanup(func() { check(t, replica.Close()) })
	check(t, replica.CatchUp(t.Context(), primary))
	const sum = "select count(*) || ' ' || coalesce(sum(id), 0) from orders"
	if got, want := ask(t, replica, sum), ask(t, primary, sum); got != want {
		t.Errorf("it has %s, want %s", got, want)
	}
}

func TestReplicaOfAReplicaThatWasPromotedFollows(t *testing.T) {
	t.Parallel()
	_, second := pair(t, new(Cluster))
	check(t, second.Promote(t.Context()))
	third, err := second.Replica(t.Context())
	check(t, err)
	t.Cleanup(func() { check(t, third.Close()) })
	execute(t, second, "insert into orders values (1)")
	check(t, third.CatchUp(t.Context(), second))
	if got := orders(t, third); got != "0,1" {
		t.Errorf("it has the orders %s", got)
	}
}

func TestReplicaCrashesAndFollowsAgain(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t, new(Cluster))
	check(t, replica.Crash(t.Context()))
	execute(t, primary, "insert into orders values (1)")
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

// pair starts a cluster with one order, and its replica.
func pair(t *testing.T, primary *Cluster) (_, replica *Cluster) {
	t.Helper()
	started(t, primary)
	execute(t, primary, "create table orders as select 0 as id")
	replica, err := primary.Replica(t.Context())
	check(t, err)
	t.Cleanup(func() { check(t, replica.Close()) })
	check(t, replica.CatchUp(t.Context(), primary))
	return primary, replica
}

func execute(t *testing.T, c *Cluster, sql string) {
	t.Helper()
	_, err := dial(t, c.URL()).Exec(t.Context(), sql)
	check(t, err)
}

func orders(t *testing.T, c *Cluster) string {
	t.Helper()
	return ask(t, c, "select string_agg(id::text, ',' order by id) from orders")
}
