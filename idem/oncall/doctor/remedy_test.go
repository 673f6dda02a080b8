package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

// follow does what a finding says, as the owner of the tables.
func (p *patient) follow(f Finding) {
	p.Helper()
	if f.Command == again {
		for _, file := range migrationFiles() {
			sql, err := idem.Migrations.ReadFile(file)
			if err != nil {
				p.Fatal(err)
			}
			p.exec(string(sql))
		}
		return
	}
	if f.Command == "" || strings.HasPrefix(f.Command, "idem ") {
		p.Fatalf("nothing in it can be executed: %s", f)
	}
	for statement := range strings.SplitSeq(f.Command, "; ") {
		p.exec(statement)
	}
}

// news returns the findings that were not there before.
func news(before, now []Finding) (found []Finding) {
	for _, f := range now {
		if !slices.ContainsFunc(before, func(b Finding) bool { return b.Check == f.Check && b.Problem == f.Problem }) {
			found = append(found, f)
		}
	}
	return found
}

// recover follows what doctor says until it finds no more than before.
func (p *patient) recover(before, found []Finding) {
	p.Helper()
	for range 5 {
		for _, f := range found {
			if f.Problem != "this could not be checked" { // because of the others
				p.follow(f)
			}
		}
		if found = news(before, p.check()); len(found) == 0 {
			return
		}
	}
	p.Fatalf("after five rounds of its remedies it finds:\n%s", printed(found))
}

// works delivers an event and has it processed.
func (p *patient) works(id string) {
	p.Helper()
	source := testkit.NewSource("notes")
	idem.Handle(&source.Routes, "paid", func(context.Context, pgx.Tx, *struct{}) error { return nil })
	inbox := idem.NewInbox(p.connect(p.config.Copy()), source)
	inbox.KeepPayloads, inbox.Logger = true, nil
	if outcome, err := inbox.Accept(p.Context(), idem.Event{ID: id, Type: "paid", Key: id, Payload: []byte(`{}`)}); outcome != idem.Pending || err != nil {
		p.Fatalf("it is %s, %v", outcome, err)
	}
	if err := inbox.Drain(p.Context()); err != nil {
		p.Fatal(err)
	}
	var state string
	if err := p.pool.QueryRow(p.Context(), `select state from idem_event_log where event_id = $1`, id).Scan(&state); err != nil || state != "done" {
		p.Fatalf("it is %s, %v", state, err)
	}
}

var update = flag.Bool("update", false, "write structure.json")

func TestItKnowsEachColumnAndIndexThatTheMigrationsMake(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	const tables = `c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> 'idem_migrations'`
	is := structure{View: "idem_event_log"}
	is.Columns = kept[column](p, `
select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation = '"C"'::regcollation, concat_ws(' ',
	case when a.attnotnull and not k.is then 'not null' end,
	case when exists (select from pg_constraint where contype = 'f' and conrelid = c.oid and conkey = array[a.attnum]) then 'references' end,
	'default ' || pg_get_expr(d.adbin, d.adrelid))
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
cross join lateral (select exists (select from pg_index where indrelid = c.oid and indisprimary and a.attnum = any (indkey::int2[])) as is) k
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where `+tables+` order by c.relname, a.attnum`)
	is.Indexes = kept[index](p, `
select i.indexrelid::regclass::text, c.relname, case when i.indisprimary then k.columns else '' end
from pg_index i join pg_class c on c.oid = i.indrelid
cross join lateral (select string_agg(a.attname, ', ' order by k.place) as columns from unnest(i.indkey::int2[]) with ordinality as k (attribute, place)
	join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attribute) k
where `+tables+` order by 1`)
	if *update {
		text, err := json.Marshal(is)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("structure.json", bytes.ReplaceAll(append(text, '\n'), []byte("},{"), []byte("},\n{")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	known, err := madeStructure()
	if diff := cmp.Diff(is, known); diff != "" || err != nil {
		t.Errorf("%v (-made +known), or run go test with -update:\n%s", err, diff)
	}
}

// kept returns the rows of a query.
func kept[R any](p *patient, sql string) []R {
	p.Helper()
	rows, err := p.pool.Query(p.Context(), sql)
	if err != nil {
		p.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[R])
	if err != nil {
		p.Fatal(err)
	}
	return all
}

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
				p.exec(d.sql)
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
				p.exec(`delete from idem_events; delete from idem_payloads where source <> ''; delete from idem_archive`)
			}
		})
	}
}

// Without its primary key a table takes an event twice.
func TestDuplicatesOfATimeWithoutAPrimaryKeyAreInTheWayAndItSaysSo(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	before := p.check()
	p.exec(`alter table idem_events drop constraint idem_events_pkey;
		insert into idem_events (event, type, key, state) values ('notes//e1', 'paid', '', 'done'), ('notes//e1', 'paid', '', 'retrying')`)
	found := news(before, p.check())
	if len(found) != 1 || !strings.Contains(found[0].Remedy, "the one of an event that is done stays") {
		t.Fatal(printed(found))
	}
	p.recover(before, found)
	var left string
	if err := p.pool.QueryRow(t.Context(), `select string_agg(state, ' ') from idem_events`).Scan(&left); err != nil || left != "done" {
		t.Fatalf("of both rows %q is left, %v", left, err)
	}
	p.works("e2")
}

// The rest of what was asked of doctor that SQL or a setting cures.
func TestWhatItSaysOfTheRoleAndTheSettingsCures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		damage          func(*patient)
		check, evidence string
		cure            func(p *patient, f Finding) // nil: the command
	}{
		{
			name:   "rights that a later table was not granted",
			damage: func(p *patient) { p.role(mayAll + `; revoke insert, delete on idem_payloads from ROLE`) },
			check:  "rights", evidence: "may not insert, delete on idem_payloads",
		},
		{
			name:   "autovacuum of a table",
			damage: func(p *patient) { p.exec(`alter table idem_payloads set (autovacuum_enabled = off)`) },
			check:  "autovacuum", evidence: "autovacuum_enabled is off for idem_payloads",
		},
		{
			name: "a day less than providers need",
			damage: func(p *patient) {
				p.inbox = &idem.Inbox{Common: idem.Common{Retention: idem.Retention{Events: 31*24*time.Hour - time.Second}}}
			},
			check: "retention", evidence: "a provider may take 31 days",
			cure: func(p *patient, f Finding) {
				var days int
				if _, err := fmt.Sscanf(f.Remedy, "set Retention to %d days", &days); err != nil {
					p.Fatalf("%q: %v", f.Remedy, err)
				}
				p.inbox.Retention.Events = time.Duration(days) * 24 * time.Hour
			},
		},
		{
			name:   "a pool that cancels its statements",
			damage: func(p *patient) { p.limits.statement = time.Hour; p.session("statement_timeout", "59min") },
			check:  "statement timeout", evidence: "statement_timeout is 59m0s",
			cure: func(p *patient, f Finding) {
				if !strings.Contains(f.Remedy, "connection string or the configuration of the pool") {
					p.Error(f.Remedy)
				}
				delete(p.config.ConnConfig.RuntimeParams, "statement_timeout")
			},
		},
		{
			name: "an application that sets it on each connection",
			damage: func(p *patient) {
				p.limits.statement = time.Hour
				p.config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
					_, err := c.Exec(ctx, `set statement_timeout = '59min'`)
					return err
				}
			},
			check: "statement timeout", evidence: "statement_timeout is 59m0s",
			cure: func(p *patient, f Finding) {
				if !strings.Contains(f.Remedy, "AfterConnect") {
					p.Error(f.Remedy)
				}
				p.config.AfterConnect = nil
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, idemtest.URL(t))
			p.heals(c.damage, c.check, c.evidence, c.cure)
		})
	}
}

// heals checks that doctor finds a damage, and no more once its remedy was followed.
func (p *patient) heals(damage func(*patient), check, evidence string, cure func(p *patient, f Finding)) {
	p.Helper()
	if cure == nil {
		cure = (*patient).follow
	}
	of := func() (found []Finding) {
		for _, f := range p.check() {
			if f.Check == check {
				found = append(found, f)
			}
		}
		return found
	}
	if found := of(); len(found) > 0 {
		p.Fatalf("before anything is wrong it finds\n%s", printed(found))
	}
	damage(p)
	found := of()
	if len(found) != 1 || !strings.Contains(found[0].Evidence, evidence) {
		p.Fatalf("it finds\n%s", printed(found))
	}
	cure(p, found[0])
	if found := of(); len(found) > 0 {
		p.Errorf("after its remedy it finds\n%s", printed(found))
	}
	p.works("cured")
}
