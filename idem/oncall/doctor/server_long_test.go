//go:build long

package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/postgres"
	"github.com/paghooks/paghooks/internal/testkit"
)

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

	p.Exec(`create role shop login connection limit 2`)
	superuser := p.config.Copy()
	p.config.ConnConfig.User = "shop"
	p.want("connections", Warning, "the pool may open more connections than Postgres grants", "4, of 2")
	p.config = superuser

	p.Session(`begin; prepare transaction 'of nobody'`)
	p.limits.transaction = 0
	p.want("old snapshots", Warning, "a prepared transaction was never ended", `"of nobody" of postgres is `)
	p.Exec(`rollback prepared 'of nobody'`)

	left := p.Session(`begin isolation level repeatable read; select 1`)
	p.want("old snapshots", Warning, "a transaction is left open, and may keep events locked", fmt.Sprintf("pid %d of role postgres", left.PgConn().PID()))
	if err := left.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	p.event("e0", "k0", "pending", "")
	p.limits.blocking = 0
	person := p.Session(`begin; update idem_events set type = type`)
	p.wantNo("locks", Error, "")
	behind := p.Session(`begin; select pg_backend_pid()`)
	waits := make(chan error, 1)
	go func() {
		_, err := behind.Exec(t.Context(), `update idem_events set type = type`)
		waits <- err
	}()
	p.Until(fmt.Sprintf(`select exists (select from pg_locks where pid = %d and not granted)`, behind.PgConn().PID()))
	p.want("locks", Error, "a session keeps idem_events locked", fmt.Sprintf("process %d of Postgres", person.PgConn().PID()))
	p.Exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, person.PgConn().PID()))
	if err := <-waits; err != nil {
		t.Error(err)
	}
	if err := behind.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Until(`select not exists (select from pg_locks where relation = 'idem_events'::regclass and pid <> pg_backend_pid())`)
	p.wantNo("locks", Error, "")
	p.Exec(`delete from idem_events; delete from idem_payloads where source <> ''`)

	dump := p.Session(`select 1`)
	pid := dump.PgConn().PID()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := dump.Exec(ctx, `select pg_sleep(3600)`) // until it is canceled
		ended <- err
	}()
	p.Until(fmt.Sprintf(`select exists (select from pg_stat_activity where pid = %d and state = 'active' and backend_xmin is not null)`, pid))
	p.want("old snapshots", Warning, "an old transaction keeps dead rows from being removed", fmt.Sprintf("pid %d of role postgres", pid))
	cancel()
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}

	p.Exec(`select pg_create_physical_replication_slot('left_behind', true)`)
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
	p.Pool.Reset() // the replica's start has ended its connections
	config, err := pgxpool.ParseConfig(replica.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.CatchUp(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	r := &patient{Shop: &testkit.Shop{TB: t}, config: config, limits: defaults}
	r.Pool = r.connect(config.Copy())
	r.want("writable", Error, "this is a replica, which takes no writes", "pg_is_in_recovery() is true")

	r.Exec(`select pg_wal_replay_pause()`)
	r.Until(`select pg_is_wal_replay_paused()`)
	p.limits.lag = 0
	p.event("e1", "k", "parked", "") // which the replica does not replay
	p.want("replication", Warning, "a replica is behind", " is streaming, 0 MB behind")

	p.Exec(`alter system set synchronous_standby_names = 'nobody'`)
	p.Exec(`select pg_reload_conf()`)
	p.Until(`select current_setting('synchronous_standby_names') = 'nobody'`)
	p.want("replication", Error, "commits wait for a replica, and none is connected that counts", "synchronous_standby_names is nobody")
	const unwatched = "this pool does not notice when somebody cancels a commit's wait for the replica"
	p.want("replication", Warning, unwatched, "synchronous_standby_names is set")
	idem.WatchCommits(p.config)
	p.wantNo("replication", Warning, unwatched)

	// No commit waits on a replica, whatever it has been given for the day of its promotion.
	r.Exec(`alter system set synchronous_standby_names = 'nobody'`)
	r.Exec(`select pg_reload_conf()`)
	r.Until(`select current_setting('synchronous_standby_names') = 'nobody'`)
	r.wantNo("replication", Error, "commits wait for a replica")
	r.wantNo("replication", Warning, unwatched)
}

// A server of its own: these settings are everybody's.
func TestAStatementTimeoutIsRemovedWhereItIsSet(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{})
	p.limits.statement = time.Hour // so that nothing is canceled, however busy the machine is
	for _, c := range []struct{ set, remedy string }{
		{`alter role postgres set statement_timeout = '59min'`, "alter role postgres reset statement_timeout"},
		{`alter role postgres in database postgres set statement_timeout = '59min'`, "alter role postgres in database postgres reset statement_timeout"},
		{`alter database postgres set statement_timeout = '59min'`, "alter database postgres reset statement_timeout"},
		{`alter role all set statement_timeout = '59min'`, "alter role all reset statement_timeout"},
		{`alter system set statement_timeout = '59min'`, "alter system set statement_timeout = 0; select pg_reload_conf()"},
	} {
		p.heals(func(p *patient) {
			p.Exec(c.set)
			if strings.Contains(c.set, "system") {
				p.Exec(`select pg_reload_conf()`)
				p.Until(`select current_setting('statement_timeout') = '59min'`)
			}
		}, "statement timeout", "statement_timeout is 59m0s", func(p *patient, f Finding) {
			if f.Command != c.remedy {
				p.Errorf("after %s it says %q", c.set, f.Command)
			}
			p.follow(f)
			if strings.Contains(c.set, "system") {
				p.Until(`select current_setting('statement_timeout') = '0'`)
			}
		})
		p.Exec(`delete from idem_events`)
	}
}

// Each of the three limits counts its own: the server has other applications.
func TestConnectionsOfOtherApplicationsAreNoFalseAlarm(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Settings: map[string]string{"max_connections": "40"}})
	p.Exec(`create role shop login connection limit 10; create role other login;
		alter database postgres connection limit 30; grant usage on schema public to shop;
		grant select, insert, update, delete on all tables in schema public to shop`)
	p.Exec(`create database elsewhere`)
	open := func(user, database string, n int) func() {
		t.Helper()
		c := p.Pool.Config().ConnConfig.Copy()
		c.User, c.Database = user, database
		var all []*pgx.Conn
		for range n {
			conn, err := pgx.ConnectConfig(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, conn)
		}
		return func() {
			for _, conn := range all {
				if err := conn.Close(context.Background()); err != nil {
					t.Error(err)
				}
				p.Until(fmt.Sprintf(`select not exists (select from pg_stat_activity where pid = %d)`, conn.PgConn().PID()))
			}
		}
	}
	p.config.ConnConfig.User = "shop"
	p.config.MaxConns = 2
	close := open("other", "elsewhere", 20) // twice what this role may have
	p.wantNo("connections", Warning, "")
	close()

	close = open("shop", "postgres", 9)
	p.want("connections", Warning, "the connections are almost all in use", " of 10 of role shop")
	close()
	p.wantNo("connections", Warning, "")

	close = open("other", "postgres", 27)
	p.want("connections", Warning, "the connections are almost all in use", " of 30 of database postgres")
	close()
	p.wantNo("connections", Warning, "")

	close = open("other", "elsewhere", 34)
	p.want("connections", Warning, "the connections are almost all in use", " of 37 of the server")
	close()
	p.wantNo("connections", Warning, "")
	p.works("afterwards")
}
