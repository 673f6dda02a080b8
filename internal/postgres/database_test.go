//go:build long

package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestEachProgramHasADatabaseThatOutlivesItOnlyUntilTheNext(t *testing.T) {
	t.Parallel()
	c := started(t, new(Cluster))
	run(t, c, "create database idemtest_of_the_user")
	given := Variable + "=" + c.URL()

	killed, living := play(t, "live", given), play(t, "live", given)
	abandoned, used := killed.line(t), living.line(t)
	if abandoned == used || abandoned == "postgres" || used == "postgres" {
		t.Errorf("two programs have the databases %s and %s", abandoned, used)
	}
	check(t, killed.Process.Kill())
	killed.awaitFamily(t)
	for ask(t, c, "select count(*)::text from pg_stat_activity where datname = '"+abandoned+"'") != "0" {
		check(t, pause(t.Context()))
	}
	a := play(t, "work", given)
	a.line(t)
	a.awaitFamily(t)
	wantOnly(t, c, "database idemtest_of_the_user", "database "+used, "database postgres", "schema public")
}

func TestProgramWithoutADatabaseOfItsOwnHasASchemaAndSaysSo(t *testing.T) {
	t.Parallel()
	c := started(t, new(Cluster))
	run(t, c, "create role ada login; create role eve login createdb; grant create on database postgres to ada, eve")
	check(t, c.write("pg_hba.conf", "local all postgres trust\nlocal postgres ada,eve trust\n"))
	run(t, c, "select pg_reload_conf()")
	eve := strings.Replace(c.URL(), "postgres@/postgres", "eve@/template1", 1)
	for {
		conn, err := pgx.Connect(t.Context(), eve)
		if err != nil {
			break // Postgres has read the file
		}
		check(t, conn.Close(t.Context()))
		check(t, pause(t.Context()))
	}
	for _, test := range []struct{ role, why string }{
		{"ada", "permission denied to create database"},
		{"eve", "pg_hba.conf"}, // it can create a database, and not connect to it
	} {
		a := play(t, "work", Variable+"="+strings.Replace(c.URL(), "postgres@", test.role+"@", 1))
		if got := a.line(t); !strings.HasSuffix(got, " at IDEMTEST_DATABASE_URL") {
			t.Errorf("%s started %s", test.role, got)
		}
		a.awaitFamily(t)
		if got := a.stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "share the database") || !strings.Contains(got, test.why) {
			t.Errorf("%s: the program says %q, want %q", test.role, got, test.why)
		}
	}
	wantOnly(t, c, "database postgres", "schema public")
}
