//go:build long

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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/testkit"
)

// A row of one partition has the place of another's row.
func TestPruneOfPartitionsForgetsOnlyWhatIsOld(t *testing.T) {
	t.Parallel()
	s := newPartitionedApp(t)
	s.Exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || case when n % 2 = 0 then 'old-' else 'new-' end || n, 'paid', '', 'done',
			case when n % 2 = 0 then now() - interval '50 days' else now() end
		from generate_series(1, 40000) n`)
	if n := queryOne[int](s, `select count(*) - count(distinct ctid) from idem_events`); n < 20_000 {
		t.Fatalf("only %d rows have the place of another", n)
	}
	s.wantSeen(s.First)
	if n, err := engineOf(s.First).DryPrune(t.Context()); n != 20_000 || err != nil {
		t.Errorf("DryPrune = %d, %v, want 20000", n, err)
	}
	s.wantPruned(s.First, 20_000)
	if n := queryOne[int](s, `select count(*) from idem_events where event like 'notes//new-%'`); n != 20_000 {
		t.Errorf("%d of 20000 events that are new are left", n)
	}
	s.wantPruned(s.First, 0)
}

// The table is behind a view here, which has no ctid, as Postgres's relatives have
// none.
func TestPruneWithoutPlacesOfRows(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.stock(1, 10, 50)
	s.Exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'done', now() - interval '50 days' from generate_series(1, 20000) n`)
	for _, table := range []string{"idem_events", "idem_archive"} {
		s.Exec(fmt.Sprintf(`alter table %[1]s rename to %[1]s_rows; create view %[1]s as select * from %[1]s_rows`, table))
	}
	s.First.Retention.Payloads = 5 * 24 * time.Hour
	s.wantSeen(s.First)
	if n, err := engineOf(s.First).DryPrune(t.Context()); n != 20_003 || err != nil {
		t.Errorf("DryPrune = %d, %v, want 20003", n, err)
	}
	s.wantPruned(s.First, 20_003)
	const left = `select array_agg(substr(event, 8) order by event) from idem_archive`
	if diff := cmp.Diff([]string{"discarded-1", "done-1"}, queryOne[[]string](s, left)); diff != "" {
		t.Error("bodies (-want +got):\n" + diff)
	}
	s.wantPruned(s.First, 0)
}

// A schema per tenant, beside tables that others have in public.
func TestSchemaThatIsNamedGetsTablesOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			d := newTwoSchemas(t)
			s := openApp(t, d.before.Pool)
			s.On(pay)
			s.WantAnswer(paid("e1"), http.StatusOK)

			tenant := &app{&testkit.Shop{TB: t, Pool: d.after, Notes: s.Notes}}
			conn, err := d.after.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			if _, err := conn.Exec(t.Context(), `set default_transaction_isolation = '`+level+`'`); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := idem.MigrateSchema(t.Context(), conn, d.first); err != nil {
					t.Fatal(err)
				}
			}
			d.wantTables(d.public, d.first)

			// From now on both have what they need, whoever is first.
			for _, pool := range []*pgxpool.Pool{d.before.Pool, d.after} {
				if err := idem.Migrate(t.Context(), pool); err != nil {
					t.Error(err)
				}
				if missing, err := doctor.MissingMigrations(t.Context(), pool); len(missing) != 0 || err != nil {
					t.Errorf("MissingMigrations = %q, %v", missing, err)
				}
			}
			tenant.Exec(`create table effects (event text not null, scope text not null default '')`)
			if o, err := tenant.NewFirst().Accept(t.Context(), identify([]byte(paid("e1")))); o != idem.Done || err != nil {
				t.Errorf("the tenant's event: %s, %v, want done", o, err)
			}
			s.WantEffects(1)
			tenant.WantEffects(1)
		})
	}
}

// Whatever the table held, and whoever had rights on it.
func TestPartitioningKeepsEventsAndRights(t *testing.T) {
	t.Parallel()
	s := openInboxApp(t, idemtest.Pool(t))
	s.On(pay)
	s.stock(1, 50)
	s.Store(letter("a1", "a", 1), letter("a2", "a", 2))
	role := queryOne[string](s, `select current_schema() || '_app'`)
	s.Exec(`create role ` + role + `; grant select, insert, update, delete on idem_events to ` + role + `; grant select on idem_event_log to public`)
	t.Cleanup(func() {
		if _, err := s.Pool.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	const all = `select array_agg(e::text order by event) from idem_events e`
	const rights = `
select array_agg(format('%s %s %s', table_name, grantee, privilege_type) order by table_name, grantee, privilege_type)
from information_schema.role_table_grants where table_schema = current_schema() and table_name in ('idem_events', 'idem_event_log')`
	const logged = `select array_agg(l::text order by event_id) from idem_event_log l`
	type stored struct{ Events, Rights, Log []string }
	look := func() stored {
		return stored{queryOne[[]string](s, all), queryOne[[]string](s, rights), queryOne[[]string](s, logged)}
	}
	before := look()
	testkit.Partition(t, s.Pool)
	if n := queryOne[int](s, `select count(*) from pg_partition_tree('idem_events') where isleaf`); n != 4 && os.Getenv("IDEM_TEST_PARTITIONED") != "1" {
		t.Errorf("there are %d partitions, want 4", n)
	}
	if err := idem.Migrate(t.Context(), s.Pool); err != nil {
		t.Errorf("Migrate afterwards: %v", err)
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Error("after partitioning (-want +got):\n" + diff)
	}
	s.runMigrations() // as another tool may
	s.Drain(4)        // with two of the stock
	s.WantEffects(4)
}

// What its owner has built on the table would be lost without a word.
func TestPartitioningStopsAtWhatItWouldLose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"an index":      {`create index on idem_events (key)`, "triggers, constraints or indexes of yours"},
		"a trigger":     {`create trigger t before update on idem_events for each row execute function suppress_redundant_updates_trigger()`, "triggers, constraints or indexes of yours"},
		"a foreign key": {`create table mine (event text collate "C" references idem_events)`, "triggers, constraints or indexes of yours"},
		"a check":       {`alter table idem_events add check (attempts >= 0)`, "triggers, constraints or indexes of yours"},
		"a view":        {`create view mine as select event from idem_events`, "other objects depend on it"},
		"partitions":    {testkit.PartitionedSQL(t), "divided already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := idemtest.Pool(t)
			if err := idem.Migrate(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			conn, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			if _, err := conn.Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			_, err = conn.Exec(t.Context(), testkit.PartitionedSQL(t))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("partitioning: %v, want an error with %q", err, c.want)
			}
			if _, err := conn.Exec(t.Context(), `rollback; select from idem_events, idem_event_log limit 0`); err != nil {
				t.Errorf("the tables are not as they were: %v", err)
			}
		})
	}
}
