package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// Values come as they do from pgx's own driver of database/sql.
func TestValuesAreThoseOfPgxsOwnDriver(t *testing.T) {
	t.Parallel()
	expressions := []string{
		"null", "true", "1::int2", "2::int4", "3::int8", "1.5::float4", "2.5::float8", "12345678901234567890.12::numeric", "'x'::text",
		"''::text", "'a'::char(3)", "'ab'::varchar", `'\x00ff'::bytea`, "'2026-11-22'::date", "'infinity'::date", "'10:11:12.5'::time",
		"'2026-11-22 10:11:12.123456'::timestamp", "'2026-11-22 10:11:12.123456+03'::timestamptz", "'1 day 2 hours'::interval",
		"'5e0c5a3e-4a2c-4d4b-9d0e-0f7d2b0c9a11'::uuid", `'{"a": [1, null]}'::json`, `'{"a": [1, null]}'::jsonb`, "array[1,null,3]",
		"array['a b','c']", "'127.0.0.1/8'::inet", "'08:00:2b:01:02:03'::macaddr", "'(1,2)'::point", "b'101'", "'[1,5)'::int4range",
		"1::oid", "'pg_class'::regclass", "'{}'::int[]", "row(1,'a')", "'a'::name", "1::money", "'<a/>'::xml",
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(idemtest.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			theirs := stdlib.OpenDBFromPool(pool)
			defer theirs.Close()
			inTx(t, pool, func(ctx context.Context, ours *sql.DB) error {
				for _, e := range expressions {
					want, got := column(ctx, t, theirs, "select "+e), column(ctx, t, ours, "select "+e)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s", e, diff)
					}
					if diff := cmp.Diff(column(ctx, t, theirs, "select "+e+" where false"), column(ctx, t, ours, "select "+e+" where false")); diff != "" {
						t.Errorf("%s, no rows: %s", e, diff)
					}
				}
				return nil
			})
		})
	}
}

type seen struct {
	Value            any
	Name, Type, Scan string
}

func column(ctx context.Context, t *testing.T, db *sql.DB, query string) (s seen) {
	t.Helper()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		t.Fatal(query, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	s.Name, s.Type, s.Scan = types[0].Name(), types[0].DatabaseTypeName(), types[0].ScanType().String()
	for rows.Next() {
		if err := rows.Scan(&s.Value); err != nil {
			t.Fatal(query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(query, err)
	}
	return s
}

func TestErrorsOfPostgresKeepTheirType(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	inTx(t, pool, func(ctx context.Context, db *sql.DB) error {
		_, err := db.QueryContext(ctx, `select 1/0`)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "22012" {
			t.Errorf("not Postgres's error: %v", err)
		}
		return nil
	})
	if _, err := sql.Open("idemsql", ""); err == nil || !strings.Contains(err.Error(), "unknown driver") {
		t.Errorf("a driver is registered: %v", err)
	}
}
