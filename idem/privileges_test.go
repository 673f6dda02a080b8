package idem_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/operator"
)

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

	s := &app{T: t, pool: role, notes: &notes{}, worked: make(chan idem.Observation, 100)}
	m := &fixable{}
	s.on(m.handle)
	s.processor, s.inbox = s.newProcessor(), nil
	s.openInbox()
	s.processor.KeepPayloads, s.inbox.KeepPayloads = true, true
	s.endpoint(s.processor, idem.StateDone)
	for range 2 {
		s.wantAnswer(paid("e1"), http.StatusOK)
		s.wantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
		s.wantAnswer(paid("bad1"), http.StatusOK)
	}
	s.wantAnswer(`{"id":"e1","type":"paid","order":"another body"}`, http.StatusOK)
	if conflicts, _, err := operator.New(s.processor, "").Conflicts(t.Context(), 100); len(conflicts) != 1 || err != nil {
		t.Errorf("Conflicts = %v, %v, want one", conflicts, err)
	}
	s.store(letter("bad2", "o2", 0), letter("e3", "o2", 0), letter("bad4", "o4", 0))
	s.drain(2)
	if blocked, _, err := operator.New(s.inbox, "").Blocked(t.Context(), 100); len(blocked) != 1 || err != nil {
		t.Errorf("Blocked = %v, %v, want one", blocked, err)
	}
	if stats, err := s.inbox.Stats(t.Context()); stats.Parked.Events != 3 || err != nil {
		t.Errorf("Stats = %+v, %v, want three parked", stats, err)
	}
	s.wantDiscarded(idem.Filter{IDs: []string{"bad4"}}, "a test", 1)
	m.fixed.Store(true)
	s.wantRequeued(idem.Filter{IDs: []string{"bad2"}}, 1)
	s.drain(2)
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1, Unhandled: 1})
	s.wantEffects(4)
	if n := queryOne[int](s, `select count(*) from idem_event_log`); n != 6 {
		t.Errorf("the view shows %d events, want 6", n)
	}
	if n, err := operator.New(s.inbox, "ana").Discard(t.Context(), idem.Filter{IDs: []string{"new"}}, "a test"); n != 1 || err != nil {
		t.Errorf("Discard by an operator = %d, %v", n, err)
	}
	s.exec(`update idem_events set received_at = '2020-01-01'`)
	s.wantPruned(s.processor, 6)
}

// Where something is missing, the error says what to do.
func TestMigrateByARoleThatMayNotSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		migrated bool // by this version; a later one is missing
	}{
		"nothing is migrated": {false}, "a later version is missing": {true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, role, name := asRole(t)
			migrate := func() error { return idem.Migrate(t.Context(), role) }
			if c.migrated {
				if err := idem.Migrate(t.Context(), owner); err != nil {
					t.Fatal(err)
				}
				execAll(t, owner, mayUse+strings.TrimSuffix(name, "_app")+` to `+name)
				migrate = func() error {
					return idem.MigrateFiles(t.Context(), role, later(`alter table idem_events add column region text`))
				}
			}
			err := migrate()
			for _, say := range []string{"the role may not create tables", "run Migrate once with one that may", "grant this role select, insert, update and delete"} {
				if err == nil || !strings.Contains(err.Error(), say) {
					t.Errorf("Migrate = %v\nwant it to say %q", err, say)
				}
			}
		})
	}
}
