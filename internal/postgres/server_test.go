package postgres

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestDatabaseOfTheEnvironmentComesFirstAndKeepsNothing(t *testing.T) {
	t.Parallel()
	c := started(t, new(Cluster))
	for _, test := range []struct {
		why   string
		given bool
		env   []string
	}{
		{"the database for tests", true, []string{"IDEMTEST_DATABASE_URL=" + c.URL()}},
		{"the one of the application is not looked at", true, []string{"DATABASE_URL=postgres://127.0.0.1:1/shop", "IDEMTEST_DATABASE_URL=" + c.URL()}},
		{"nor without one for tests", false, []string{"DATABASE_URL=" + c.URL(), "IDEMTEST_DATABASE_URL="}},
	} {
		a := play(t, "work", append(test.env, "IDEMTEST_BARE=1")...)
		if got := a.line(t); strings.HasSuffix(got, " at IDEMTEST_DATABASE_URL") != test.given {
			t.Errorf("%s: started %s", test.why, got)
		}
		a.awaitFamily(t)
	}

	conn, err := pgx.Connect(t.Context(), c.URL())
	check(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), `select nspname || coalesce('.' || relname, '')
		from pg_namespace n left join pg_class on relnamespace = n.oid
		where nspname !~ '^pg_|^information_schema$'`)
	check(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	check(t, err)
	if diff := cmp.Diff([]string{"public"}, got); diff != "" {
		t.Errorf("schemas and tables in the user's database (-want +got):\n%s", diff)
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

func TestDockerIsTheLastResort(t *testing.T) {
	t.Parallel()
	for _, leave := range []string{"", "without closing"} {
		t.Run("leaves "+leave, func(t *testing.T) {
			t.Parallel()
			bin := openDir(t)
			script(t, bin, "docker", fmt.Sprintf(`PATH='%s' IDEMTEST_ACT=docker IDEMTEST_BARE= IDEMTEST_STATE='%s' exec '%s' "$@"`,
				os.Getenv("PATH"), t.TempDir(), self(t)))
			a := play(t, "work", "PATH="+bin, "IDEMTEST_BARE=1", "IDEMTEST_LEAVE="+leave)
			if got := a.line(t); !strings.HasSuffix(got, " from Docker's postgres:17-alpine") {
				t.Errorf("started %s", got)
			}
			a.awaitFamily(t)
		})
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

func TestConnectionStringLeadsToItsSchema(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ why, dsn, want string }{
		{"a URL", "postgres://ada@db:5433/shop", "-csearch_path=s1"},
		{"its options stay", "postgres://ada@db/shop?options=-cgeqo%3Doff", "-cgeqo=off -csearch_path=s1"},
		{"its search_path goes", "postgresql://ada@db/shop?search_path=other", "-csearch_path=s1"},
		{"a socket", "postgres://ada@/shop?host=/run/pg", "-csearch_path=s1"},
		{"a password of punctuation", "postgres://ada:p%40s%2Bs%2F@db/shop", "-csearch_path=s1"},
		{"several hosts", "postgres://ada@a:1,b:2/shop", "-csearch_path=s1"},
		{"words", "host=db user=ada password='it\\'s' dbname=shop", "-csearch_path=s1"},
		{"words with options", `host=db user=ada dbname=shop options='-c DateStyle=ISO\\,\\ DMY'`, `-c DateStyle=ISO\,\ DMY -csearch_path=s1`},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			got, err := withSchema(test.dsn, "s1")
			check(t, err)
			config, err := pgx.ParseConfig(got)
			check(t, err)
			want := map[string]string{"options": test.want, "application_name": "s1"}
			if diff := cmp.Diff(want, config.RuntimeParams); diff != "" {
				t.Errorf("%s (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestSearchPathOfTheUserDoesNotWin(t *testing.T) {
	t.Parallel()
	got, err := withSchema("host=db user=ada dbname=shop search_path=other", "s1")
	check(t, err)
	config, err := pgx.ParseConfig(got)
	check(t, err)
	if path := config.RuntimeParams["search_path"]; path != "s1" {
		t.Errorf("%s leads to %s", got, path)
	}
}

func TestConnectionStringThatCannotBeExtendedIsRefused(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"host=db user=ada password=", "postgres://ada:hush@db:port/shop"} {
		got, err := withSchema(dsn, "s1")
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s became %q, %v", dsn, got, err)
		}
	}
}

func FuzzSchemaChangesNothingElse(f *testing.F) {
	f.Add("postgres://ada:p%40ss@db:5433/shop?sslmode=disable&options=-cgeqo%3Doff")
	f.Add("host=db user=ada password='it\\'s' dbname=shop sslmode=disable")
	f.Add("postgres://ada@a:1,b:2/shop?sslmode=disable&application_name=a+b")
	f.Fuzz(func(t *testing.T, dsn string) {
		before, err := pgconn.ParseConfig(dsn)
		if err != nil {
			return
		}
		got, err := withSchema(dsn, "s1")
		if err != nil {
			return
		}
		after, err := pgconn.ParseConfig(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", dsn, got, err)
		}
		if diff := cmp.Diff(target(before), target(after)); diff != "" {
			t.Errorf("%q became %q (-before +after):\n%s", dsn, got, diff)
		}
		if options := after.RuntimeParams["options"]; !strings.HasSuffix(options, "-csearch_path=s1") ||
			!strings.HasPrefix(options, before.RuntimeParams["options"]) {
			t.Errorf("%q has the options %q", got, options)
		}
	})
}

// target returns the servers and the database of a connection string.
func target(c *pgconn.Config) []any {
	all := []any{c.Host, c.Port, c.Database, c.User, c.Password, c.TLSConfig != nil, c.ConnectTimeout}
	for _, f := range c.Fallbacks {
		all = append(all, f.Host, f.Port, f.TLSConfig != nil)
	}
	return all
}
