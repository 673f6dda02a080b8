package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// column is one that the migrations make, in their words.
type column struct {
	table, name, typ string
	collated         bool // in the order of bytes
	rest             string
}

// fallback is the default of the column, "" for none.
func (c column) fallback() string {
	_, value, _ := strings.Cut(c.rest, "default ")
	return strings.TrimSuffix(strings.TrimSpace(value), " not null")
}

// madeWith returns the text after the column's name.
func (c column) madeWith() string {
	sql := c.typ
	if c.collated {
		sql += ` collate "C"`
	}
	return strings.TrimSpace(sql + " " + c.rest)
}

// index is one that the migrations make.
type index struct {
	name, table string
	key         string // the columns of a primary key, else ""
	sql         string // that makes it
}

// structure holds the objects that a file of the migrations makes.
type structure struct {
	columns []column
	indexes []index
	view    string
}

var (
	tableBegins = regexp.MustCompile(`^create table if not exists (\w+) \(`)
	columnLine  = regexp.MustCompile(`^\s+(\w+)\s+(\w+(?:\[\])?)( collate "C")?\s*(.*?),?\s*$`)
	keyLine     = regexp.MustCompile(`^\s+primary key \((.*)\)`)
	columnAdded = regexp.MustCompile(`^alter table (\w+) add column if not exists (\w+)\s+(\w+(?:\[\])?)( collate "C")?\s*(.*);$`)
	indexMade   = regexp.MustCompile(`(?m)^create (?:unique )?index if not exists (\w+)\s+on (\w+)[^;]*`)
	viewMade    = regexp.MustCompile(`(?m)^create or replace view (\w+)`)
	comment     = regexp.MustCompile(`(?m)\s*--.*$`)
	spaces      = regexp.MustCompile(`\s+`)
)

// structureOf reads a file of idem.Migrations, so that nothing is written down twice.
func structureOf(file string) (s structure) {
	text, err := idem.Migrations.ReadFile(file)
	if err != nil {
		panic(err) // it is embedded
	}
	sql := comment.ReplaceAllString(string(text), "")
	primary := func(table, key string) {
		s.indexes = append(s.indexes, index{table + "_pkey", table, key, fmt.Sprintf("alter table %s add primary key (%s)", table, key)})
	}
	add := func(table string, m []string) {
		c := column{table, m[0], m[1], m[2] != "", strings.TrimSpace(m[3])}
		if rest, isKey := strings.CutSuffix(c.rest, "primary key"); isKey {
			c.rest = strings.TrimSpace(rest)
			primary(table, c.name)
		}
		s.columns = append(s.columns, c)
	}
	var table string
	for line := range strings.Lines(sql) {
		line = strings.TrimRight(line, "\n")
		begins, added := tableBegins.FindStringSubmatch(line), columnAdded.FindStringSubmatch(line)
		switch {
		case begins != nil:
			table = begins[1]
		case strings.HasPrefix(line, ")"):
			table = ""
		case added != nil:
			add(added[1], added[2:])
		case table != "":
			if key := keyLine.FindStringSubmatch(line); key != nil {
				primary(table, key[1])
			} else if m := columnLine.FindStringSubmatch(line); m != nil {
				add(table, m[1:])
			}
		}
	}
	for _, m := range indexMade.FindAllStringSubmatch(sql, -1) {
		s.indexes = append(s.indexes, index{m[1], m[2], "", spaces.ReplaceAllString(strings.TrimSpace(m[0]), " ")})
	}
	if m := viewMade.FindStringSubmatch(sql); m != nil {
		s.view = m[1]
	}
	return s
}

// structures returns the objects that the applied migrations make.
func (e *examination) structures(ctx context.Context) (all structure, err error) {
	first, having, err := store.Schemas(ctx, e.db)
	if err != nil || len(having) > 0 && having[0] != first {
		return all, err // see schemas
	}
	missing, _, err := e.unapplied(ctx)
	if err != nil {
		return all, err
	}
	for _, file := range migrationFiles() {
		if slices.Contains(missing, file) {
			continue
		}
		s := structureOf(file)
		all.columns, all.indexes = append(all.columns, s.columns...), append(all.indexes, s.indexes...)
		if s.view != "" {
			all.view = s.view
		}
	}
	return all, nil
}

const again = `run the SQL of idem.Migrations once more: idem migrate -print | psql "$DATABASE_URL"`

// columns finds tables and columns that are not as the migrations made them.
func (e *examination) columns(ctx context.Context) (found []Finding, err error) {
	s, err := e.structures(ctx)
	if err != nil {
		return nil, err
	}
	is, err := e.columnsThere(ctx, s.columns)
	if err != nil {
		return nil, err
	}
	var gone []string // tables
	for _, c := range s.columns {
		there, ok := is[c.table+"."+c.name]
		switch f := (Finding{Severity: Error}); {
		case slices.Contains(gone, c.table):
		case !is[c.table].Right:
			gone = append(gone, c.table)
			f.Problem, f.Evidence = "a table is gone, and all that was in it", c.table
			f.Remedy = "stop the application, and restore it from a backup; to have it empty, without one, " + again
			found = append(found, f)
		case !ok:
			f.Problem, f.Evidence = "a column is gone, and its values", c.name+" of "+c.table
			f.Remedy = c.comesBack()
			found = append(found, f)
		case !there.Right:
			f.Problem, f.Evidence = "a column has another type", fmt.Sprintf("%s of %s is %s, and was made as %s", c.name, c.table, there.Type, c.madeWith())
			f.Remedy = c.changesBack(s.view)
			found = append(found, f)
		case c.fallback() != "" && !there.Default:
			f.Problem, f.Evidence = "a column has lost its default: events cannot be stored", c.name+" of "+c.table
			f.Remedy = fmt.Sprintf("alter table %s alter column %s set default %s", c.table, c.name, c.fallback())
			found = append(found, f)
		}
	}
	e.damaged = e.damaged || len(found) > 0
	return found, nil
}

// there is a column as it is; of a table, under the table's name, only that it is there.
type there struct {
	Name, Type     string
	Right, Default bool
}

func (e *examination) columnsThere(ctx context.Context, want []column) (map[string]there, error) {
	const list = `
select t.name, '', to_regclass(t.name) is not null, false from unnest($1::text[]) as t (name)
union all
select w.tab || '.' || w.name, format_type(a.atttypid, a.atttypmod),
	a.atttypid = to_regtype(w.typ) and a.atttypmod = -1 and (not w.collated or (select collname = 'C' from pg_collation c where c.oid = a.attcollation)),
	a.atthasdef
from unnest($1::text[], $2::text[], $3::text[], $4::bool[]) as w (tab, name, typ, collated)
join pg_attribute a on a.attrelid = to_regclass(w.tab) and a.attname = w.name and a.attnum > 0 and not a.attisdropped`
	var tables, names, types []string
	var collated []bool
	for _, c := range want {
		tables, names, types, collated = append(tables, c.table), append(names, c.name), append(types, c.typ), append(collated, c.collated)
	}
	rows, err := all[there](ctx, e, list, tables, names, types, collated)
	is := make(map[string]there, len(rows))
	for _, r := range rows {
		is[r.Name] = r
	}
	return is, err
}

// blanks are values for rows of before, by the type of a column without a default.
var blanks = map[string]string{
	"text": "''", "bytea": "''", "bigint": "0", "integer": "0", "timestamptz": "now()", "jsonb": "'{}'", "text[]": "'{}'",
}

// identifies reports whether no row means anything without the column.
func (c column) identifies() bool {
	return c.name == "event" || c.name == "state" || strings.Contains(c.rest, "references")
}

// comesBack returns the statement that makes the column again.
func (c column) comesBack() string {
	const backup = "stop the application, and restore the table from a backup"
	add := fmt.Sprintf("alter table %s add column %s %s", c.table, c.name, c.madeWith())
	switch {
	case c.identifies(): // nothing says which event a row is, or whether it was done
		return backup
	case strings.Contains(c.rest, "not null") && c.fallback() == "":
		return fmt.Sprintf("%s; without one: %s default %s; alter table %s alter column %s drop default", backup, add, blanks[c.typ], c.table, c.name)
	}
	return backup + "; without one: " + add
}

// changesBack returns the statement that gives the column its type again. Postgres changes none that a view shows.
func (c column) changesBack(view string) string {
	typ := c.typ
	if c.collated {
		typ += ` collate "C"`
	}
	alter := "alter table " + c.table
	if !strings.Contains(c.rest, "identity") {
		alter += fmt.Sprintf(" alter column %s drop default,", c.name)
	}
	alter += fmt.Sprintf(" alter column %s type %s using %[1]s::%s", c.name, typ, c.typ)
	if d := c.fallback(); d != "" {
		alter += fmt.Sprintf(", alter column %s set default %s", c.name, d)
	}
	return fmt.Sprintf("stop the application; the view goes with it, and idem doctor says next how to make it: drop view if exists %s; %s", view, alter)
}

// views finds that the view of support staff is gone.
func (e *examination) views(ctx context.Context) ([]Finding, error) {
	s, err := e.structures(ctx)
	if err != nil || s.view == "" {
		return nil, err
	}
	is, err := one[bool](ctx, e, `select exists (select from pg_class where oid = to_regclass($1) and relkind = 'v')`, s.view)
	if err != nil || is {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "the view that support staff reads is gone", Evidence: s.view,
		Remedy: again + "; then grant select on it again to those who had it",
	}}, nil
}

// indexes finds those that are not there or not valid. A primary key may have any name.
func (e *examination) indexes(ctx context.Context) (found []Finding, err error) {
	s, err := e.structures(ctx)
	if err != nil {
		return nil, err
	}
	var names, tables, keys []string
	for _, i := range s.indexes {
		names, tables, keys = append(names, i.name), append(tables, i.table), append(keys, i.key)
	}
	type wrong struct {
		Name  string
		There bool
	}
	const list = `
select w.name, i.indexrelid is not null
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as w (name, tab, key, place)
left join pg_index i on i.indexrelid = to_regclass(quote_ident(current_schema()) || '.' || w.name)
where to_regclass(w.tab) is not null and case when w.key = '' then i.indexrelid is null or not i.indisvalid or not i.indisready
	else not exists (
		select from pg_index u
		where u.indrelid = to_regclass(w.tab) and u.indpred is null and u.indisunique and u.indimmediate and u.indisvalid and u.indisready
			and w.key = (
				select string_agg(a.attname, ', ' order by k.place) from unnest(u.indkey::int2[]) with ordinality as k (attribute, place)
				join pg_attribute a on a.attrelid = u.indrelid and a.attnum = k.attribute where k.place <= u.indnkeyatts)) end
order by w.place`
	all, err := all[wrong](ctx, e, list, names, tables, keys)
	for _, w := range all {
		i := s.indexes[slices.IndexFunc(s.indexes, func(i index) bool { return i.name == w.Name })]
		f := Finding{Severity: Error, Evidence: i.name}
		switch {
		case w.There:
			f.Problem = "an index is not valid: duplicates or order are at risk, or every search reads the whole table"
			f.Remedy = "reindex index concurrently " + i.name
		case i.key != "":
			f.Problem = "a primary key is gone: no event can be stored, and rows may be there twice"
			f.Remedy = "stop the application; where this names a duplicate, delete all rows of it but one, of an event the one that is done: " + i.sql
		default:
			f.Problem = "an index is missing: order is at risk, or every search reads the whole table"
			f.Remedy = "nobody can write to its table while this runs; on a large one, say create index concurrently: " + i.sql
		}
		found = append(found, f)
	}
	e.damaged = e.damaged || len(found) > 0
	return found, err
}
