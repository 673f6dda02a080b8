// Package tables tests the tables of all packages of this module, as Postgres's catalogs describe them.
package tables

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Without one, a publication lets no row be changed or deleted.
func TestEveryTableHasAPrimaryKeyThatIsItsReplicaIdentity(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, pool *pgxpool.Pool) {
		wantNone(t, pool, "tables without a primary key, or with another replica identity", `
select relname::text from pg_class c
where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
	and (relreplident <> 'd' or not exists (select from pg_index where indrelid = c.oid and indisprimary and indisvalid and indimmediate))`)
	})
}

// The order of any other collation is that of the system's library, and changes with it under the index.
func TestEveryIndexOfTextIsInTheOrderOfBytes(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, pool *pgxpool.Pool) {
		wantNone(t, pool, "columns of indexes that are not collate \"C\"", `
select format('%s of %s: %s', pg_get_indexdef(indexrelid, k.place::int, true), indexrelid::regclass, k.used::regcollation)
from pg_index i join pg_class c on c.oid = indrelid cross join unnest(indcollation::oid[]) with ordinality as k (used, place)
where relnamespace = current_schema()::regnamespace and k.used not in (0, '"C"'::regcollation)`)
	})
}

// A copy by logical replication has the rows of a sequence, and begins it anew.
func TestNoTableHasASequence(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, pool *pgxpool.Pool) {
		wantNone(t, pool, "sequences and identity columns", `
select relname::text from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'S'
union select format('%s of %s', attname, relname) from pg_class c join pg_attribute on attrelid = c.oid
where relnamespace = current_schema()::regnamespace and attidentity <> ''`)
	})
}

// Postgres asks for the identity of rows when a statement starts, whatever rows it finds, and of nothing but its
// table: so these are all statements that change or delete rows.
func TestPublishedTablesAreChanged(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, pool *pgxpool.Pool) {
		all := tablesOf(t, pool)
		publication := pgx.Identifier{"of " + one(t, pool, `select current_schema()`)}.Sanitize()
		exec(t, pool, `create publication `+publication+` for table `+strings.Join(all, ", "))
		t.Cleanup(func() {
			if _, err := pool.Exec(context.Background(), `drop publication `+publication); err != nil {
				t.Error(err)
			}
		})
		for _, table := range all {
			column := one(t, pool, `select attname::text from pg_attribute where attrelid = $1::text::regclass and attnum > 0 and attgenerated = '' order by attnum limit 1`, table)
			for _, statement := range []string{
				fmt.Sprintf(`update %s set %s = %[2]s`, table, column),
				fmt.Sprintf(`delete from %s where false`, table),
			} {
				if _, err := pool.Exec(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
		}
	})
}

// made is a statement that makes a table.
var made = regexp.MustCompile(`(?i)create table (?:if not exists )?(\w+) +\(|create table (?:if not exists )?(\w+) partition of`)

func TestEveryTableThatAPackageMakesIsLookedAt(t *testing.T) {
	t.Parallel()
	const root = "../.."
	var want []string
	for _, folder := range []string{"idem", "asaas", "zeltapay"} {
		err := fs.WalkDir(os.DirFS(root), folder, func(file string, d fs.DirEntry, err error) error {
			ofUsers := !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "testdata") && !strings.Contains(file, "brokertest")
			if err != nil || d.IsDir() || !ofUsers || filepath.Ext(file) != ".go" && filepath.Ext(file) != ".sql" {
				return err
			}
			text, err := os.ReadFile(filepath.Join(root, file))
			for _, table := range made.FindAllStringSubmatch(string(text), -1) {
				want = append(want, table[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	got := tablesOf(t, migrated(t))
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("tables (-in the source of packages +here), or migrate those of another package here, too:\n%s", diff)
	}
}

// eachForm runs a test on the tables of all packages, and on those with idem_events in partitions.
func eachForm(t *testing.T, test func(*testing.T, *pgxpool.Pool)) {
	t.Helper()
	t.Run("as they are made", func(t *testing.T) {
		t.Parallel()
		test(t, migrated(t))
	})
	t.Run("in partitions", func(t *testing.T) {
		t.Parallel()
		partitioned, err := os.ReadFile("../../docs/partitioned.sql")
		if err != nil {
			t.Fatal(err)
		}
		pool := migrated(t)
		exec(t, pool, string(partitioned))
		test(t, pool)
	})
}

// migrated returns a schema with the tables of all packages.
func migrated(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := charges.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

func wantNone(t *testing.T, pool *pgxpool.Pool, what, query string) {
	t.Helper()
	if found := texts(t, pool, query); len(found) > 0 {
		t.Errorf("%s:\n%s", what, strings.Join(found, "\n"))
	}
}

func tablesOf(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	return texts(t, pool, `select relname::text from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') order by relname collate "C"`)
}

// texts returns the one column of a query, in the order of bytes.
func texts(t *testing.T, pool *pgxpool.Pool, query string, args ...any) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), query, args...)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func one(t *testing.T, pool *pgxpool.Pool, query string, args ...any) string {
	t.Helper()
	all := texts(t, pool, query, args...)
	if len(all) != 1 {
		t.Fatalf("%d rows, want 1: %s", len(all), query)
	}
	return all[0]
}

func exec(t *testing.T, pool *pgxpool.Pool, statements string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateOfEachPackageNamesTheRightThatTheRoleLacks(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	schema := one(t, pool, `select current_schema()`)
	role := schema + "_app"
	exec(t, pool, `create role `+role+`; grant usage on schema `+schema+` to `+role)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), `set role `+role); err != nil {
		t.Fatal(err)
	}
	for _, migrate := range []func() error{
		func() error { return idem.Migrate(t.Context(), conn) },
		func() error { return charges.Migrate(t.Context(), conn) },
		func() error { return idem.MigrateSchema(t.Context(), conn, schema) },
		func() error { return charges.MigrateSchema(t.Context(), conn, schema) },
	} {
		err := migrate()
		want := fmt.Sprintf(`migrating the tables: role %q may not create tables in schema %[2]q, it lacks the right CREATE: have an administrator run: grant create on schema %[2]q to %[1]q; `, role, schema)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), fmt.Sprintf(" of schema %q", schema), ""), want) {
			t.Errorf("it says %v\nwant %s", err, want)
		}
	}
}
