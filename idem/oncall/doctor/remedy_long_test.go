//go:build long

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// Each part of the tables is taken away or changed; what doctor says then is done, and events are
// processed again.
func TestWhatItSaysOfDamagedTablesCuresThem(t *testing.T) {
	t.Parallel()
	type damage struct {
		name, sql      string
		check, problem string
		evidence       []string
	}
	byTable := map[string][]*damage{}
	add := func(table, name, check, problem, sql string, evidence ...string) *damage {
		d := &damage{name, sql, check, problem, evidence}
		byTable[table] = append(byTable[table], d)
		return d
	}
	s, err := madeStructure()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range s.Indexes {
		if i.Key != "" {
			add(i.Table, i.Name+" is gone", "indexes", "a primary key is gone", fmt.Sprintf("alter table %s drop constraint %s cascade", i.Table, i.Name), i.Name)
			add(i.Table, i.Table+" is gone", "columns", "a table is gone", fmt.Sprintf("drop table %s cascade", i.Table), i.Table)
		} else {
			add(i.Table, i.Name+" is gone", "indexes", "an index is missing", "drop index "+i.Name, i.Name)
		}
		invalid := fmt.Sprintf("update pg_index set indisvalid = false where indexrelid = '%s'::regclass", i.Name)
		add(i.Table, i.Name+" is not valid", "indexes", "is not valid", invalid, i.Name)
	}
	changes := map[string]*damage{} // of all columns of a table
	for _, c := range s.Columns {
		of := c.Name + " of " + c.Table
		if !c.isNeeded() {
			add(c.Table, of+" is gone", "columns", "a column is gone", fmt.Sprintf("alter table %s drop column %s cascade", c.Table, c.Name), of)
		}
		if c.fallback() != "" {
			add(c.Table, of+" has no default", "columns", "a column has lost its default", fmt.Sprintf("alter table %s alter column %s drop default", c.Table, c.Name), of)
		}
		if strings.Contains(c.Rest, "references") || c.Table+"."+c.Name == "idem_audit.id" { // one refers to the other
			continue
		}
		const noView = `drop view if exists idem_event_log; `
		if changes["type of "+c.Table] == nil {
			var sql strings.Builder
			sql.WriteString(noView)
			for _, i := range s.Indexes { // which would not let their columns change
				if i.Table == c.Table && i.Key == "" {
					sql.WriteString("drop index " + i.Name + "; ")
				}
			}
			changes["type of "+c.Table] = add(c.Table, "the types", "columns", "a column has another type", sql.String())
			changes["order of "+c.Table] = add(c.Table, "the order of text", "columns", "a column has another type", noView)
		}
		changed := map[string]string{"text": "varchar(1000)", "integer": "numeric", "bigint": "numeric"}[c.Type]
		if changed == "" {
			changed = "text"
		}
		d := changes["type of "+c.Table]
		d.sql += fmt.Sprintf("alter table %s alter column %s drop default, alter column %[2]s type %s using %[2]s::%[3]s; ", c.Table, c.Name, changed)
		d.evidence = append(d.evidence, of+" is ")
		if c.Collated {
			d := changes["order of "+c.Table]
			d.sql += fmt.Sprintf(`alter table %s alter column %s type text collate "default"; `, c.Table, c.Name)
			d.evidence = append(d.evidence, of+" is ")
		}
	}
	add("idem_event_log", "the view is gone", "view", "the view that support staff reads is gone", "drop view idem_event_log", "idem_event_log")
	for table, damages := range byTable {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, idemtest.URL(t))
			before := p.check()
			for n, d := range damages {
				p.Exec(d.sql)
				found := news(before, p.check())
				for _, evidence := range d.evidence {
					if !slices.ContainsFunc(found, func(f Finding) bool {
						return f.Check == d.check && strings.Contains(f.Problem, d.problem) && strings.Contains(f.Evidence, evidence)
					}) {
						t.Fatalf("%s: it does not find %s, but\n%s", d.name, evidence, printed(found))
					}
				}
				p.recover(before, found)
				p.works(fmt.Sprintf("after-%d", n))
				p.Exec(`delete from idem_events; delete from idem_payloads where source <> ''; delete from idem_archive`)
			}
		})
	}
}
