package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

// statements are the SQL that a remedy ends with.
var statements = regexp.MustCompile(`(?:^|: )((?:alter|create|drop|grant|reindex|vacuum) .*)$`)

// follow does what a remedy says, as the owner of the tables.
func (p *patient) follow(remedy string) {
	p.Helper()
	if strings.Contains(remedy, "idem migrate -print") {
		for _, file := range migrationFiles() {
			sql, err := idem.Migrations.ReadFile(file)
			if err != nil {
				p.Fatal(err)
			}
			p.exec(string(sql))
		}
		return
	}
	sql := statements.FindStringSubmatch(remedy)
	if sql == nil {
		p.Fatalf("nothing in it can be executed: %s", remedy)
	}
	for statement := range strings.SplitSeq(sql[1], "; ") {
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
				p.follow(f.Remedy)
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

// everything is all that the migrations make.
func everything() (all structure) {
	for _, file := range migrationFiles() {
		s := structureOf(file)
		all.columns, all.indexes = append(all.columns, s.columns...), append(all.indexes, s.indexes...)
	}
	return all
}

// The SQL of the migrations is read line by line.
func TestItKnowsEachColumnAndIndexThatTheMigrationsMake(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	made := func(sql string) (list []string) {
		rows, err := p.pool.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if list, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		return list
	}
	var columns, indexes []string
	s := everything()
	for _, c := range s.columns {
		columns = append(columns, fmt.Sprintf("%s.%s %t", c.table, c.name, c.fallback() != ""))
	}
	for _, i := range s.indexes {
		indexes = append(indexes, fmt.Sprintf("%s on %s, primary %t", i.name, i.table, i.key != ""))
	}
	sorted := cmpopts.SortSlices(strings.Compare)
	is := made(`select c.relname || '.' || a.attname || ' ' || a.atthasdef from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> 'idem_migrations' and a.attnum > 0`)
	if diff := cmp.Diff(is, columns, sorted); diff != "" {
		t.Errorf("columns (-made +known):\n%s", diff)
	}
	is = made(`select i.indexrelid::regclass || ' on ' || i.indrelid::regclass || ', primary ' || indisprimary from pg_index i
		join pg_class c on c.oid = i.indrelid where c.relnamespace = current_schema()::regnamespace and c.relname <> 'idem_migrations'`)
	if diff := cmp.Diff(is, indexes, sorted); diff != "" {
		t.Errorf("indexes (-made +known):\n%s", diff)
	}
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
	s := everything()
	for _, i := range s.indexes {
		if i.key != "" {
			add(i.table, i.name+" is gone", "indexes", "a primary key is gone", fmt.Sprintf("alter table %s drop constraint %s cascade", i.table, i.name), i.name)
			add(i.table, i.table+" is gone", "columns", "a table is gone", fmt.Sprintf("drop table %s cascade", i.table), i.table)
		} else {
			add(i.table, i.name+" is gone", "indexes", "an index is missing", "drop index "+i.name, i.name)
		}
		invalid := fmt.Sprintf("update pg_index set indisvalid = false where indexrelid = '%s'::regclass", i.name)
		add(i.table, i.name+" is not valid", "indexes", "is not valid", invalid, i.name)
	}
	changes := map[string]*damage{} // of all columns of a table
	for _, c := range s.columns {
		of := c.name + " of " + c.table
		if !c.identifies() {
			add(c.table, of+" is gone", "columns", "a column is gone", fmt.Sprintf("alter table %s drop column %s cascade", c.table, c.name), of)
		}
		if c.fallback() != "" {
			add(c.table, of+" has no default", "columns", "a column has lost its default", fmt.Sprintf("alter table %s alter column %s drop default", c.table, c.name), of)
		}
		if strings.Contains(c.rest, "identity") || strings.Contains(c.rest, "references") {
			continue
		}
		const noView = `drop view if exists idem_event_log; `
		if changes["type of "+c.table] == nil {
			var sql strings.Builder
			sql.WriteString(noView)
			for _, i := range s.indexes { // which would not let their columns change
				if i.table == c.table && i.key == "" {
					sql.WriteString("drop index " + i.name + "; ")
				}
			}
			changes["type of "+c.table] = add(c.table, "the types", "columns", "a column has another type", sql.String())
			changes["order of "+c.table] = add(c.table, "the order of text", "columns", "a column has another type", noView)
		}
		changed := map[string]string{"text": "varchar(1000)", "integer": "numeric", "bigint": "numeric"}[c.typ]
		if changed == "" {
			changed = "text"
		}
		d := changes["type of "+c.table]
		d.sql += fmt.Sprintf("alter table %s alter column %s drop default, alter column %[2]s type %s using %[2]s::%[3]s; ", c.table, c.name, changed)
		d.evidence = append(d.evidence, of+" is ")
		if c.collated {
			d := changes["order of "+c.table]
			d.sql += fmt.Sprintf(`alter table %s alter column %s type text collate "default"; `, c.table, c.name)
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
	if len(found) != 1 || !strings.Contains(found[0].Remedy, "delete all rows of it but one, of an event the one that is done") {
		t.Fatal(printed(found))
	}
	p.exec(`delete from idem_events where event = 'notes//e1' and state <> 'done'`)
	p.recover(before, news(before, p.check()))
	p.works("e2")
}

// The rest of what was asked of doctor that SQL or a setting cures.
func TestWhatItSaysOfTheRoleAndTheSettingsCures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		damage          func(*patient)
		check, evidence string
		cure            func(p *patient, remedy string) // nil: the SQL of the remedy
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
			name:   "a day less than providers need",
			damage: func(p *patient) { p.inbox = &idem.Inbox{Common: idem.Common{Retention: 31*24*time.Hour - time.Second}} },
			check:  "retention", evidence: "a provider may take 31 days",
			cure: func(p *patient, remedy string) {
				var days int
				if _, err := fmt.Sscanf(remedy, "set Retention to %d days", &days); err != nil {
					p.Fatalf("%q: %v", remedy, err)
				}
				p.inbox.Retention = time.Duration(days) * 24 * time.Hour
			},
		},
		{
			name:   "a pool that cancels its statements",
			damage: func(p *patient) { p.session("statement_timeout", "5ms") },
			check:  "statement timeout", evidence: "statement_timeout is 5ms",
			cure: func(p *patient, remedy string) {
				if !strings.Contains(remedy, "connection string or the configuration of the pool") {
					p.Error(remedy)
				}
				delete(p.config.ConnConfig.RuntimeParams, "statement_timeout")
			},
		},
		{
			name: "an application that sets it on each connection",
			damage: func(p *patient) {
				p.config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
					_, err := c.Exec(ctx, `set statement_timeout = 5`)
					return err
				}
			},
			check: "statement timeout", evidence: "statement_timeout is 5ms",
			cure: func(p *patient, remedy string) {
				if !strings.Contains(remedy, "AfterConnect") {
					p.Error(remedy)
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
func (p *patient) heals(damage func(*patient), check, evidence string, cure func(p *patient, remedy string)) {
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
	cure(p, found[0].Remedy)
	if found := of(); len(found) > 0 {
		p.Errorf("after its remedy it finds\n%s", printed(found))
	}
	p.works("cured")
}
