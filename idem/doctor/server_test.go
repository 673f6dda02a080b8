package doctor

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/internal/postgres"
)

// pooled puts a pooler in front of the examined sessions.
func (p *patient) pooled(sessions int) {
	p.Helper()
	pooler, err := pgproxy.NewPooler(p.Context(), p.config.ConnString(), sessions)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = pooler.Close() })
	pooler.Through(p.config)
}

// start starts a server with settings of its own.
func start(t *testing.T, c *postgres.Cluster) *patient {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return newPatient(t, c.URL())
}

func TestEachCheckFindsWhatIsWrongWithAServer(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Settings: map[string]string{
		"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_prepared_transactions": "5",
	}})
	p.want("durability", Error, "a crash of the machine can lose or corrupt everything", "fsync is off")
	p.want("durability", Error, "a crash of the machine can corrupt tables", "full_page_writes is off")
	p.want("autovacuum", Warning, "nothing removes dead rows", "autovacuum is off")

	p.exec(`create role shop login connection limit 2`)
	superuser := p.config.Copy()
	p.config.ConnConfig.User = "shop"
	p.want("connections", Warning, "the pool may open more connections than Postgres grants", "4, of 2")
	p.config = superuser

	p.another(`begin; prepare transaction 'of nobody'`)
	p.limits.transaction = 0
	p.want("old snapshots", Warning, "a prepared transaction was never ended", `"of nobody" of postgres is `)
	p.exec(`rollback prepared 'of nobody'`)

	left := p.another(`begin isolation level repeatable read; select 1`)
	p.want("old snapshots", Warning, "a transaction is left open, and may keep events locked", fmt.Sprintf("pid %d of role postgres", left.PgConn().PID()))
	if err := left.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	dump := p.another(`select 1`)
	pid := dump.PgConn().PID()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := dump.Exec(ctx, `select pg_sleep(3600)`) // until it is canceled
		ended <- err
	}()
	p.until(fmt.Sprintf(`select exists (select from pg_stat_activity where pid = %d and state = 'active' and backend_xmin is not null)`, pid))
	p.want("old snapshots", Warning, "an old transaction keeps dead rows from being removed", fmt.Sprintf("pid %d of role postgres", pid))
	cancel()
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}

	p.exec(`select pg_create_physical_replication_slot('left_behind', true)`)
	p.limits.lag = 0
	p.event("e1", "k", "parked", "")
	p.want("old snapshots", Warning, "a replication slot that nobody reads keeps the write-ahead log", "left_behind is 0 MB behind")
}

func TestEachCheckFindsWhatIsWrongWithReplicas(t *testing.T) {
	t.Parallel()
	cluster := &postgres.Cluster{}
	p := start(t, cluster)
	replica, err := cluster.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(replica.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.CatchUp(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	r := &patient{T: t, config: config, limits: defaults}
	r.pool = r.connect(config.Copy())
	r.want("writable", Error, "this is a replica, which takes no writes", "pg_is_in_recovery() is true")

	r.exec(`select pg_wal_replay_pause()`)
	r.until(`select pg_is_wal_replay_paused()`)
	p.limits.lag = 0
	p.event("e1", "k", "parked", "") // which the replica does not replay
	p.want("replication", Warning, "a replica is behind", " is streaming, 0 MB behind")

	p.exec(`alter system set synchronous_standby_names = 'nobody'`)
	p.exec(`select pg_reload_conf()`)
	p.until(`select current_setting('synchronous_standby_names') = 'nobody'`)
	p.want("replication", Error, "commits wait for a replica, and none is connected that counts", "synchronous_standby_names is nobody")
	const unwatched = "this pool does not notice when somebody cancels a commit's wait for the replica"
	p.want("replication", Warning, unwatched, "synchronous_standby_names is set")
	idem.WatchCommits(p.config)
	p.wantNo("replication", Warning, unwatched)
}

func TestAServerThatCanHaveNoReplicaIsSaid(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Settings: map[string]string{"wal_level": "minimal", "max_wal_senders": "0"}})
	p.want("replication", Info, "this server can have no replica", "wal_level is minimal")
}
