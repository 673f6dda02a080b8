package promises_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Since Postgres 15 an ordinary role may not create tables. It can start where
// all is migrated, and needs no more than this for all that there is.
func TestRoleThatMayOnlyReadAndWriteRunsBothModes(t *testing.T) {
	t.Parallel()
	owner, role, name := asRole(t)
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	execAll(t, owner, `create table effects (event text not null, scope text not null default '')`,
		mayUse+strings.TrimSuffix(name, "_app")+` to `+name)
	if _, err := role.Exec(t.Context(), `create table mine ()`); err == nil {
		t.Fatal("the role may create tables: this proves nothing")
	}
	if err := idem.Migrate(t.Context(), role); err != nil {
		t.Fatal("Migrate =", err)
	}

	s := overPool(t, role)
	m := &fixable{}
	s.On(m.Handle)
	s.First, s.Inbox = s.NewFirst(), nil
	s.openInbox()
	s.First.KeepPayloads, s.Inbox.KeepPayloads = true, true
	s.endpoint(s.First, idem.StateDone)
	for range 2 {
		s.WantAnswer(paid("e1"), http.StatusOK)
		s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
	}
	s.WantAnswer(`{"id":"e1","type":"paid","order":"another body"}`, http.StatusOK)
	if conflicts, _, err := operator.New(s.First, "").Conflicts(t.Context(), 100); len(conflicts) != 1 || err != nil {
		t.Errorf("Conflicts = %v, %v, want one", conflicts, err)
	}
	s.Store(letter("bad1", "o1", 0), letter("bad2", "o2", 0), letter("e3", "o2", 0), letter("bad4", "o4", 0))
	s.Drain(3)
	if blocked, _, err := operator.New(s.Inbox, "").Blocked(t.Context(), 100); len(blocked) != 1 || err != nil {
		t.Errorf("Blocked = %v, %v, want one", blocked, err)
	}
	if stats, err := s.Inbox.Stats(t.Context()); stats.Parked.Events != 3 || err != nil {
		t.Errorf("Stats = %+v, %v, want three parked", stats, err)
	}
	s.WantDiscarded(idem.Filter{IDs: []string{"bad4"}}, "a test", 1)
	m.Fixed.Store(true)
	s.wantRequeued(idem.Filter{IDs: []string{"bad2"}}, 1)
	s.Drain(2)
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Unhandled: 1})
	s.WantEffects(4)
	if n := queryOne[int](s, `select count(*) from idem_event_log`); n != 6 {
		t.Errorf("the view shows %d events, want 6", n)
	}
	if n, err := acted(t.Context(), "a test")(operator.New(s.Inbox, "ana").PlanDiscard(t.Context(), idem.Filter{IDs: []string{"new"}})); n != 1 || err != nil {
		t.Errorf("Discard by an operator = %d, %v", n, err)
	}
	s.Exec(`update idem_events set received_at = '2020-01-01'`)
	s.wantPruned(s.First, 6)
}

// The error has the right and the statements, and these work, each way of the two.
func TestMigrateByARoleThatMayNotHasTheStatementsOfAnAdministrator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		migrated bool // by this version; a later one is missing
		follow   func(owner *pgxpool.Pool, said string)
	}{
		"nothing is migrated, the role gets the right": {false, func(owner *pgxpool.Pool, said string) {
			execAll(t, owner, between(said, "have an administrator run: ", "; or migrate once"))
		}},
		"nothing is migrated, the owner migrates": {false, func(owner *pgxpool.Pool, said string) {
			if err := idem.Migrate(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			_, statements, _ := strings.Cut(said, "with a role that may, and run: ")
			execAll(t, owner, strings.Split(statements, "; ")...)
		}},
		"a later version is missing, the owner migrates": {true, func(owner *pgxpool.Pool, said string) {
			if err := migrateFiles(t.Context(), owner, later(addColumn), time.Minute); err != nil {
				t.Fatal(err)
			}
			_, statements, _ := strings.Cut(said, "with a role that may, and run: ")
			execAll(t, owner, strings.Split(statements, "; ")...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, role, name := asRole(t)
			schema := strings.TrimSuffix(name, "_app")
			migrate := func() error { return idem.Migrate(t.Context(), role) }
			if c.migrated {
				if err := idem.Migrate(t.Context(), owner); err != nil {
					t.Fatal(err)
				}
				execAll(t, owner, mayUse+schema+` to `+name)
				migrate = func() error { return migrateFiles(t.Context(), role, later(addColumn), time.Minute) }
			}
			err := migrate()
			want := fmt.Sprintf(`role %q may not create tables in schema %q, it lacks the right CREATE: have an administrator run: grant create on schema`, name, schema)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("Migrate = %v\nwant it to say %q", err, want)
			}
			c.follow(owner, err.Error())
			if err := migrate(); err != nil {
				t.Errorf("after its statements: %v", err)
			}
			s := overPool(t, role)
			if outcome, err := s.NewFirst().Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Unhandled {
				t.Errorf("an event is %s, %v, want unhandled", outcome, err)
			}
		})
	}
}

// A role may create tables, and those of package idem are another's.
func TestMigrationOfTablesOfAnotherRoleAsksForTheirOwner(t *testing.T) {
	t.Parallel()
	owner, role, name := asRole(t)
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	schema := strings.TrimSuffix(name, "_app")
	execAll(t, owner, mayUse+schema+` to `+name, `grant create on schema `+schema+` to `+name)
	err := migrateFiles(t.Context(), role, later(addColumn), time.Minute)
	if want := "migrate with the role that owns the tables, or a member of it: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Migrate = %v, want %q", err, want)
	}
}

// between returns the part of a text between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// What support staff sees of an event, by the names that it uses.
func TestEventLogShowsEveryEventInPlainColumns(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.On(refuseBad)
	s.WantAnswer(paid("done/1"), http.StatusOK)
	s.WantAnswer(`{"id":"done/1","type":"paid","order":"another body"}`, http.StatusOK)
	s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
	s.Store(in("shop/1", letter("bad1", "o7", 1)))
	s.Drain(1)
	s.Store(in("shop/1", letter("e2", "o7", 2)))
	s.Drain(0)

	type line struct {
		Source, Scope, EventID, Type, Entity, State string
		Attempts                                    int
		LastError                                   string
		Occurred, Conflict, Due, Done, Failures     bool
	}
	rows, err := s.Pool.Query(t.Context(), `select source, scope, event_id, type, entity, state, attempts, coalesce(last_error, ''),
		occurred_at is not null, conflict_at is not null, due_at is not null, done_at is not null, failures is not null from idem_event_log order by received_at`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[line])
	if err != nil {
		t.Fatal(err)
	}
	want := []line{
		{"notes", "", "done/1", "paid", "o1", "done", 0, "", false, true, false, true, false},
		{"notes", "", "new", "new", "", "unhandled", 0, "", false, false, false, false, false},
		{"notes", "shop%2F1", "bad1", "paid", "o7", "parked", 1, "no such order", true, false, false, false, true},
		{"notes", "shop%2F1", "e2", "paid", "o7", "pending", 0, "", true, false, false, false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("idem_event_log (-want +got):\n" + diff)
	}
	if n := queryOne[int](s, `select count(*) from information_schema.columns
		where table_schema = current_schema() and table_name = 'idem_event_log' and data_type = 'bytea'`); n != 0 {
		t.Error("the log shows bodies")
	}
}

// With the rights that docs/oncall.md grants, and no others.
func TestSupportReadsTheViewAndNothingElse(t *testing.T) {
	t.Parallel()
	owner, role, name := asRole(t)
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	index, grant := "", ""
	for _, sql := range sqlOf(t, "../../docs/oncall.md") {
		if strings.Contains(sql, "create index") {
			index += sql
		} else {
			grant += sql
		}
	}
	schema := strings.TrimSuffix(name, "_app")
	execAll(t, owner, index, strings.NewReplacer("schema public", "schema "+schema, "to support", "to "+name).Replace(grant))
	p := newFirst(owner, &notes{})
	p.Logger = nil
	for _, id := range []string{"new1", "new2"} {
		if outcome, err := p.Accept(t.Context(), idem.Event{ID: id, Type: "new", Key: "o1", Payload: []byte(newBody)}); outcome != idem.Unhandled || err != nil {
			t.Fatal(outcome, err)
		}
	}
	execAll(t, owner, `update idem_events set state = 'done' where event = 'notes//new1'`)
	var seen []string
	if err := role.QueryRow(t.Context(), `select array_agg(concat_ws(' ', event_id, state, done_at is not null) order by event_id) from idem_event_log where entity = 'o1'`).Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new1 done t", "new2 unhandled f"}, seen); diff != "" {
		t.Error("support sees (-want +got):\n" + diff)
	}
	for _, sql := range []string{
		`select event from idem_events`, `select body from idem_payloads`, `select body from idem_archive`, `select actor from idem_audit`,
	} {
		if _, err := role.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v, want it denied", sql, err)
		}
	}
	if n, err := operator.New(p, "").ScanOfKey(t.Context()); n != 0 || err != nil || index == "" {
		t.Errorf("with the index of docs/oncall.md %d events are read, %v", n, err)
	}
}

// asRole opens two pools on one schema: the owner's, and one of a role that may
// use the schema and nothing else.
func asRole(t *testing.T) (owner, role *pgxpool.Pool, name string) {
	t.Helper()
	url := idemtest.URL(t)
	owner = openPool(t, url, func(*pgxpool.Config) {})
	name = newRole(t, owner)
	role = openPool(t, url, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = name })
	return owner, role, name
}

// newRole makes a role that may use the owner's schema and nothing else.
func newRole(t *testing.T, owner *pgxpool.Pool) (name string) {
	t.Helper()
	var schema string
	if err := owner.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	name = schema + "_app"
	execAll(t, owner, `create role `+name, `grant usage on schema `+schema+` to `+name)
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), `drop owned by `+name+`; drop role `+name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func execAll(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

const mayUse = `grant select, insert, update, delete on all tables in schema `

// sqlOf returns the blocks of SQL in a document.
func sqlOf(t *testing.T, path string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```sql\n")
	for _, block := range blocks[1:] {
		sql, _, _ := strings.Cut(block, "```")
		all = append(all, sql)
	}
	return all
}
