package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/postgres"
)

// A server of its own: these settings are everybody's.
func TestAStatementTimeoutIsRemovedWhereItIsSet(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{})
	for _, c := range []struct{ set, remedy string }{
		{`alter role postgres set statement_timeout = 500`, "alter role postgres reset statement_timeout"},
		{`alter role postgres in database postgres set statement_timeout = '500ms'`, "alter role postgres in database postgres reset statement_timeout"},
		{`alter database postgres set statement_timeout = '500ms'`, "alter database postgres reset statement_timeout"},
		{`alter role all set statement_timeout = '500ms'`, "alter role all reset statement_timeout"},
		{`alter system set statement_timeout = '500ms'`, "alter system set statement_timeout = 0; select pg_reload_conf()"},
	} {
		p.heals(func(p *patient) {
			p.exec(c.set)
			if strings.Contains(c.set, "system") {
				p.exec(`select pg_reload_conf()`)
				p.until(`select current_setting('statement_timeout') = '500ms'`)
			}
		}, "statement timeout", "statement_timeout is 500ms", func(p *patient, remedy string) {
			if remedy != c.remedy {
				p.Errorf("after %s it says %q", c.set, remedy)
			}
			p.follow(remedy)
			if strings.Contains(c.set, "system") {
				p.until(`select current_setting('statement_timeout') = '0'`)
			}
		})
		p.exec(`delete from idem_events`)
	}
}

// Each of the three limits counts its own: the server has other applications.
func TestConnectionsOfOtherApplicationsAreNoFalseAlarm(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Settings: map[string]string{"max_connections": "40"}})
	p.exec(`create role shop login connection limit 10; create role other login;
		alter database postgres connection limit 30; grant usage on schema public to shop;
		grant select, insert, update, delete on all tables in schema public to shop`)
	p.exec(`create database elsewhere`)
	open := func(user, database string, n int) func() {
		t.Helper()
		c := p.pool.Config().ConnConfig.Copy()
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
				p.until(fmt.Sprintf(`select not exists (select from pg_stat_activity where pid = %d)`, conn.PgConn().PID()))
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

func TestARoleThatOnlyLooksIsNotAskedToWrite(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	p.event("e1", "k", "parked", "")
	p.role(`grant select on all tables in schema SCHEMA to ROLE`)
	p.session("default_transaction_read_only", "on")
	for _, f := range p.check() {
		if f.Severity == Error && f.Check != "durability" || strings.Contains(f.Remedy, "insert") {
			t.Errorf("it finds %s", f)
		}
	}
	p.want("rights", Info, "this role may only read", "may change none of the tables")
	p.want("parked", Warning, "events are parked", "1 event")

	p = newPatient(t, idemtest.URL(t))
	p.role(`grant select on all tables in schema SCHEMA to ROLE; revoke select on idem_audit from ROLE`)
	const problem = "this role may not see all tables"
	p.want("rights", Info, problem, "may not select on idem_audit")
	for _, f := range p.check() {
		if f.Problem == problem {
			p.follow(f.Remedy)
		}
	}
	p.wantNo("rights", Info, problem)
}
