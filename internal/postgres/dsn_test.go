package postgres

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

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

func TestConnectionStringLeadsToAnotherDatabase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ why, dsn string }{
		{"a URL", "postgres://ada:p%40s%2Bs%2F@db:5433/shop?sslmode=disable"},
		{"a URL without a database", "postgres://ada@db:5433"},
		{"its parameter would win over the path", "postgres://ada@db/shop?dbname=other"},
		{"so would this one", "postgres://ada@db/shop?database=other"},
		{"a socket", "postgres://ada@/shop?host=/run/pg"},
		{"several hosts", "postgres://ada@a:1,b:2/shop"},
		{"words", "host=db user=ada password='it\\'s' dbname=shop"},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			before, err := pgconn.ParseConfig(test.dsn)
			check(t, err)
			dsn, err := withDatabase(test.dsn, "own")
			check(t, err)
			after, err := pgconn.ParseConfig(dsn)
			check(t, err)
			before.Database = "own"
			if diff := cmp.Diff(target(before), target(after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", dsn, diff)
			}
		})
	}
}
