package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// dump returns SQL that makes the tables, with their rows.
func dump(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	var b strings.Builder
	b.WriteString("-- made by go run ./internal/upgrade, never changed: see internal/upgrade/main.go\n")
	files, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := fs.ReadFile(idem.Migrations, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n-- %s\n%s", file, text)
	}
	b.WriteString("\n-- rows\nset timezone = 'UTC';\n")
	if _, err := pool.Exec(ctx, `update idem_workers set host = 'frozen', pid = 1`); err != nil {
		return "", err
	}
	rows, _ := pool.Query(ctx, `select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r' order by 1`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	for _, table := range tables {
		if err := dumpTable(ctx, pool, table, &b); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// dumpTable writes the rows of a table that the migrations have not made.
func dumpTable(ctx context.Context, pool *pgxpool.Pool, table string, b *strings.Builder) error {
	rows, _ := pool.Query(ctx, `
select attname, format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end
	|| coalesce(' default ' || (select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = attrelid and adnum = attnum), '')
from pg_attribute where attrelid = $1::text::regclass and attnum > 0 and not attisdropped order by attnum`, table)
	var columns, values, types []string
	var name, kind string
	if _, err := pgx.ForEachRow(rows, []any{&name, &kind}, func() error {
		columns, values, types = append(columns, name), append(values, "quote_nullable("+name+"::text)"), append(types, name+" "+kind)
		return nil
	}); err != nil {
		return err
	}
	where := ""
	if columns[0] == "event" {
		where = " where not starts_with(event, '//')" // of no source: the migrations insert them
	}
	rows, _ = pool.Query(ctx, `select `+strings.Join(values, ` || ', ' || `)+` from `+table+where+` order by 1`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if table == "idem_migrations" { // which Migrate makes
		fmt.Fprintf(b, "\ncreate table idem_migrations (%s, primary key (%s));", strings.Join(types, ", "), columns[0])
	}
	fmt.Fprintf(b, "\n-- %s: %d\n", table, len(lines))
	for _, line := range lines {
		fmt.Fprintf(b, "insert into %s (%s) values (%s);\n", table, strings.Join(columns, ", "), line)
	}
	return nil
}
