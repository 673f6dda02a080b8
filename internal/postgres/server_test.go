package postgres

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// wantOnly fails the test if a cluster has other databases, or other tables and schemas in the first one.
func wantOnly(t *testing.T, c *Cluster, want ...string) {
	t.Helper()
	rows, err := dial(t, c.URL()).Query(t.Context(), `select 'database ' || datname from pg_database where not datistemplate union all
		select 'schema ' || nspname || coalesce('.' || relname, '') from pg_namespace n left join pg_class on relnamespace = n.oid
		where nspname !~ '^pg_|^information_schema$' order by 1`)
	check(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the user's server has (-want +got):\n%s", diff)
	}
}

func TestDatabaseForTestsThatFailsIsNotReplaced(t *testing.T) {
	t.Parallel()
	a := play(t, "work", Variable+"=postgres://ada:hush@127.0.0.1:1/shop")
	a.awaitFamily(t)
	got := a.stderr.String()
	if !strings.Contains(got, "idemtest: IDEMTEST_DATABASE_URL is set but cannot be used") || strings.Contains(got, "hush") {
		t.Errorf("got %s", got)
	}
}

// docker plays the program docker, with a cluster as the container: the
// container of `docker run -i` ends when its first process reads the end of
// stdin.
func docker() {
	args := os.Args[1:]
	state := func(container string) string { return filepath.Join(os.Getenv("IDEMTEST_STATE"), container) }
	if len(args) == 3 && args[0] == "port" {
		address, err := os.ReadFile(state(args[1]))
		must(err)
		os.Stdout.Write(address)
		return
	}
	want := []string{
		"run", "--rm", "-i", "--name", args[4], "-p", "127.0.0.1::5432",
		"-e", "POSTGRES_HOST_AUTH_METHOD=trust", "postgres:17-alpine", "sh", "-c", inContainer,
	}
	if diff := cmp.Diff(want, args); diff != "" {
		must(fmt.Errorf("docker was called with (-want +got):\n%s", diff))
	}
	c := start()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go forward(listener, filepath.Join(c.dir, ".s.PGSQL.5432"))
	must(os.WriteFile(state(args[4]), fmt.Appendln(nil, listener.Addr()), 0o600))
	os.Stdin.Read(make([]byte, 1))
	must(c.Close())
}

var plain = regexp.MustCompile(`^idemtest_[a-z0-9_]{13,53}$`) // an identifier has 63 bytes

func FuzzSchemaNameNeedsNoQuotes(f *testing.F) {
	f.Add("TestPaid/twice_à la carte")
	f.Add("")
	f.Fuzz(func(t *testing.T, of string) {
		a, b := uniqueName(of), uniqueName(of)
		if !plain.MatchString(a) || a == b {
			t.Errorf("%q, then %q", a, b)
		}
	})
}
