package doctor

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// made is the structure that the migrations of this version make, as the catalogs of Postgres describe it. The
// test TestItKnowsEachColumnAndIndexThatTheMigrationsMake writes it with -update.
//
//go:embed structure.json
var made []byte

// structure holds the objects that the migrations make.
type structure struct {
	Columns []column
	Indexes []index
	View    string
}

// column is one that the migrations make.
type column struct {
	Table, Name, Type string
	Collated          bool   // in the order of bytes
	Rest              string // not null, the default and the like
}

// index is one that the migrations make.
type index struct {
	Name, Table string
	Key         string // the columns of a primary key, else ""
}

// fallback is the default of the column, "" for none.
func (c column) fallback() string {
	_, value, _ := strings.Cut(c.Rest, "default ")
	return value
}

// typ returns the type, with its order.
func (c column) typ() string {
	if c.Collated {
		return c.Type + ` collate "C"`
	}
	return c.Type
}

// structures returns the objects that the tables must have; none if the tables lack migrations, which another
// check reports.
func (e *examination) structures(ctx context.Context) (all structure, err error) {
	first, having, err := store.Schemas(ctx, e.db)
	if err != nil || len(having) > 0 && having[0] != first {
		return all, err // see schemas
	}
	missing, _, err := e.unapplied(ctx)
	if err != nil || len(missing) > 0 {
		e.damaged = true
		return all, err
	}
	return madeStructure()
}

func madeStructure() (all structure, err error) { return all, json.Unmarshal(made, &all) }

// again makes what is gone, and leaves the rest.
const again = "idem migrate -again"

// columns finds tables and columns that are not as the migrations made them.
func (e *examination) columns(ctx context.Context) (found []Finding, err error) {
	s, err := e.structures(ctx)
	if err != nil {
		return nil, err
	}
	is, err := e.columnsThere(ctx, s.Columns)
	if err != nil {
		return nil, err
	}
	add := func(problem, evidence, remedy, command string) {
		found = append(found, Finding{Severity: Error, Problem: problem, Evidence: evidence, Remedy: remedy, Command: command})
	}
	var gone []string // tables
	for _, c := range s.Columns {
		there, ok := is[c.Table+"."+c.Name]
		of, alter := c.Name+" of "+c.Table, "alter table "+c.Table
		switch {
		case slices.Contains(gone, c.Table):
		case !is[c.Table].Right && slices.Contains(passing, c.Table):
			gone = append(gone, c.Table)
			add("a table is gone, and all that was in it", c.Table, "nothing in it is needed any more: it comes back empty", again)
		case !is[c.Table].Right:
			gone = append(gone, c.Table)
			add("a table is gone, and all that was in it", c.Table, "it comes back empty; stop the application first, and restore it from a backup if there is one", again)
		case !ok && c.isNeeded():
			add("a column is gone, and its values", of, "stop the application, and restore the table from a backup: its rows mean nothing without that column", "")
		case !ok:
			add("a column is gone, and its values", of, "stop the application, and restore the table from a backup; without one, the column comes back empty",
				strings.TrimSpace(fmt.Sprintf("%s add column %s %s %s", alter, c.Name, c.typ(), c.Rest)))
		case !there.Right:
			add("a column has another type", fmt.Sprintf("%s is %s, and was made as %s", of, there.Type, c.typ()), "stop the application; the view goes with it, and idem doctor says next how to make it",
				fmt.Sprintf("drop view if exists %s; %s alter column %s type %s using %[3]s::%[5]s", s.View, alter, c.Name, c.typ(), c.Type))
		}
		if ok && c.fallback() != "" && !there.Default {
			add("a column has lost its default: events cannot be stored", of, "", fmt.Sprintf("%s alter column %s set default %s", alter, c.Name, c.fallback()))
		}
	}
	e.damaged = e.damaged || len(found) > 0
	return found, nil
}

// passing are the tables whose rows are written anew.
var passing = []string{"idem_workers", "idem_prunes", "idem_pauses", "idem_notices"}

// there is a column as it is. Under the name of a table alone, Right reports that the table exists.
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
		tables, names, types, collated = append(tables, c.Table), append(names, c.Name), append(types, c.Type), append(collated, c.Collated)
	}
	rows, err := all[there](ctx, e, list, tables, names, types, collated)
	is := make(map[string]there, len(rows))
	for _, r := range rows {
		is[r.Name] = r
	}
	return is, err
}

// isNeeded reports whether a row means nothing without the column.
func (c column) isNeeded() bool {
	return c.Name == "event" || c.Name == "state" || c.Name == "id" && !slices.Contains(passing, c.Table) || strings.Contains(c.Rest, "references") || strings.Contains(c.Rest, "not null") && c.fallback() == ""
}

// views finds that the view for support staff is missing.
func (e *examination) views(ctx context.Context) ([]Finding, error) {
	s, err := e.structures(ctx)
	if err != nil || s.View == "" {
		return nil, err
	}
	is, err := one[bool](ctx, e, `select exists (select from pg_class where oid = to_regclass($1) and relkind = 'v')`, s.View)
	if err != nil || is {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "the view that support staff reads is gone", Evidence: s.View,
		Remedy: "then grant select on it again to those who had it", Command: again,
	}}, nil
}

// indexes finds indexes that are missing or not valid. A primary key may have any name.
func (e *examination) indexes(ctx context.Context) (found []Finding, err error) {
	s, err := e.structures(ctx)
	if err != nil {
		return nil, err
	}
	var names, tables, keys []string
	for _, i := range s.Indexes {
		names, tables, keys = append(names, i.Name), append(tables, i.Table), append(keys, i.Key)
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
		i := s.Indexes[slices.IndexFunc(s.Indexes, func(i index) bool { return i.Name == w.Name })]
		f := Finding{Severity: Error, Evidence: i.Name}
		switch {
		case w.There:
			f.Problem = "an index is not valid: duplicates or order are at risk, or every search reads the whole table"
			f.Command = "reindex index concurrently " + i.Name
		case i.Key != "":
			f.Problem = "a primary key is gone: no event can be stored, and rows may be there twice"
			f.Remedy = "stop the application; of rows that are there twice, the one of an event that is done stays, else the first"
			f.Command = i.keyComesBack()
		default:
			f.Problem = "an index is missing: order is at risk, or every search reads the whole table"
			f.Remedy, f.Command = "nobody can write to its table while this runs", again
		}
		found = append(found, f)
	}
	e.damaged = e.damaged || len(found) > 0
	return found, err
}

// keyComesBack returns the statements that leave one row of each key, and make the primary key again.
func (i index) keyComesBack() string {
	better := "ctid"
	if i.Table == "idem_events" {
		better = "state = 'done' desc, received_at, ctid"
	}
	return fmt.Sprintf("delete from %s where (tableoid, ctid) in (select tableoid, ctid from (select tableoid, ctid, row_number() over (partition by %s order by %s) as n from %[1]s) d where n > 1); "+
		"alter table %[1]s add primary key (%[2]s)", i.Table, i.Key, better)
}
