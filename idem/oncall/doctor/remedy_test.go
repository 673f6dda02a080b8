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
			p.Exec(string(sql))
		}
		return
	}
	if f.Command == "" || strings.HasPrefix(f.Command, "idem ") {
		p.Fatalf("nothing in it can be executed: %s", f)
	}
	for statement := range strings.SplitSeq(f.Command, "; ") {
		p.Exec(statement)
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
	if err := p.Pool.QueryRow(p.Context(), `select state from idem_event_log where event_id = $1`, id).Scan(&state); err != nil || state != "done" {
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
	rows, err := p.Pool.Query(p.Context(), sql)
	if err != nil {
		p.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[R])
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// Without its primary key a table takes an event twice.
func TestDuplicatesOfATimeWithoutAPrimaryKeyAreInTheWayAndItSaysSo(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	before := p.check()
	p.Exec(`alter table idem_events drop constraint idem_events_pkey;
		insert into idem_events (event, type, key, state) values ('notes//e1', 'paid', '', 'done'), ('notes//e1', 'paid', '', 'pending')`)
	found := news(before, p.check())
	if len(found) != 1 || !strings.Contains(found[0].Remedy, "the one of an event that is done stays") {
		t.Fatal(printed(found))
	}
	p.recover(before, found)
	var left string
	if err := p.Pool.QueryRow(t.Context(), `select string_agg(state, ' ') from idem_events`).Scan(&left); err != nil || left != "done" {
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
			name:   "a right that each delivery needs, to see what is paused",
			damage: func(p *patient) { p.role(mayAll + `; revoke select on idem_pauses from ROLE`) },
			check:  "rights", evidence: "may not select on idem_pauses",
		},
		{
			name:   "autovacuum of a table",
			damage: func(p *patient) { p.Exec(`alter table idem_payloads set (autovacuum_enabled = off)`) },
			check:  "autovacuum", evidence: "autovacuum_enabled is off for idem_payloads",
		},
		{
			name: "a day less than providers need",
			damage: func(p *patient) {
				p.inbox = &idem.Inbox{Retention: idem.Retention{Events: 31*24*time.Hour - time.Second}}
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

// It once printed idem migrate -schema: typed, done events ran again under green health.
func TestAPathThatHidesTheTablesIsPutBackWhereItIsSet(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"the first schema has no tables": false, "somebody has made tables in it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, idemtest.URL(t)).elsewhere("")
			p.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done'); create schema shop`)
			if made {
				if err := idem.MigrateSchema(t.Context(), p.Pool, "shop"); err != nil {
					t.Fatal(err)
				}
			}
			delete(p.config.ConnConfig.RuntimeParams, "search_path")
			delete(p.config.ConnConfig.RuntimeParams, "options") // which has one, too
			name := pgx.Identifier{p.config.ConnConfig.Database}.Sanitize()
			p.Exec(`alter database ` + name + ` set search_path = shop, public`)
			var found []Finding
			for _, f := range p.check() {
				if strings.Contains(f.Command, "migrate") {
					t.Errorf("it makes tables: %s", f)
				}
				if f.Check == "schemas" {
					found = append(found, f)
				}
			}
			if want := "alter database " + name + " set search_path = public, shop"; len(found) != 1 || found[0].Severity != Error || found[0].Command != want {
				t.Fatalf("it finds\n%s", printed(found))
			}
			p.follow(found[0])
			p.wantNo("schemas", Error, "the first")
			pool := p.connect(p.config.Copy())
			if outcome, err := idem.NewInbox(pool, testkit.NewSource("notes")).Accept(t.Context(), idem.Event{ID: "e1", Type: "paid"}); outcome != idem.Duplicate || err != nil {
				t.Errorf("the event that is done comes again: %s, %v", outcome, err)
			}
		})
	}
}
