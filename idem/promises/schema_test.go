package promises_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/testkit"
)

// An application's role gets a schema of its own, which its search_path finds first.
// After a restart the events that are done are still known.
func TestSchemaThatAppearsEarlierInTheSearchPathGetsNoTables(t *testing.T) {
	t.Parallel()
	d := newTwoSchemas(t)
	s := openApp(t, d.before.Pool)
	s.On(pay)
	s.WantAnswer(paid("e1"), http.StatusOK)

	restarted := &app{&testkit.Shop{TB: t, Pool: d.after, Notes: s.Notes}}
	err := idem.Migrate(t.Context(), d.after)
	for _, want := range []string{
		`idem: migrating the tables: the tables are in schema "` + d.public + `", and the first schema of the search_path is "` + d.first + `"`,
		"first in the search_path; idem doctor says where it is set",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Migrate = %v, want %s", err, want)
		}
	}
	if missing, err := doctor.MissingMigrations(t.Context(), d.after); missing != nil || err == nil || !strings.Contains(err.Error(), d.public) {
		t.Errorf("MissingMigrations = %q, %v", missing, err)
	}
	d.wantTables(d.public)
	if o, err := restarted.NewFirst().Accept(t.Context(), identify([]byte(paid("e1")))); o != idem.Duplicate || err != nil {
		t.Errorf("the event comes again: %s, %v, want a duplicate", o, err)
	}
}

func TestMigrateSchemaInATransactionLeavesItsSearchPath(t *testing.T) {
	t.Parallel()
	d := newTwoSchemas(t)
	err := pgx.BeginFunc(t.Context(), d.before.Pool, func(tx pgx.Tx) error {
		if err := idem.MigrateSchema(t.Context(), tx, d.first); err != nil {
			return err
		}
		var schema string
		err := tx.QueryRow(t.Context(), `select current_schema()`).Scan(&schema)
		if schema != d.public {
			t.Errorf("the transaction goes on in schema %q, want %q", schema, d.public)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.wantTables(d.first)
}

func TestMigrateSchemaOfNoSchemaChangesNothing(t *testing.T) {
	t.Parallel()
	d := newTwoSchemas(t)
	for _, schema := range []string{"", "nowhere", d.first + " else"} {
		if err := idem.MigrateSchema(t.Context(), d.before.Pool, schema); err == nil || !strings.HasPrefix(err.Error(), "idem: migrating the tables") {
			t.Errorf("MigrateSchema of %q = %v", schema, err)
		}
	}
	d.wantTables()
}

// A schema that was restored without its tables, or lost them, and kept the record.
func TestTablesThatAreGoneAreMadeAgainWhateverIsRecorded(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`drop view idem_event_log; drop table idem_events, idem_payloads, idem_archive, idem_audit_events, idem_audit`)
	if missing, err := doctor.MissingMigrations(t.Context(), s.Pool); len(missing) == 0 || err != nil {
		t.Errorf("MissingMigrations = %q, %v, want all", missing, err)
	}
	if err := idem.Migrate(t.Context(), s.Pool); err != nil {
		t.Fatal(err)
	}
	s.On(pay)
	s.WantAnswer(paid("e1"), http.StatusOK)
}

func newTwoSchemas(t *testing.T) *twoSchemas {
	t.Helper()
	url := idemtest.URL(t)
	before := overPool(t, openPool(t, url, func(*pgxpool.Config) {}))
	d := &twoSchemas{T: t, before: before, public: queryOne[string](before, `select current_schema()`)}
	d.first = d.public + " Its own"
	name := pgx.Identifier{d.first}.Sanitize()
	before.Exec(`create schema ` + name) // as "create schema authorization ROLE" makes one of "$user"
	t.Cleanup(func() {
		if _, err := before.Pool.Exec(context.Background(), `drop schema `+name+` cascade`); err != nil {
			t.Error(err)
		}
	})
	d.after = openPool(t, url, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = name + ", " + pgx.Identifier{d.public}.Sanitize()
	})
	return d
}

// twoSchemas are a database with a schema "public", in which an application may have
// its tables, and another that comes before it in the search_path.
type twoSchemas struct {
	*testing.T
	before        *app // of connections that know one schema only
	after         *pgxpool.Pool
	public, first string
}

// wantTables checks which schemas have tables of this package.
func (d *twoSchemas) wantTables(want ...string) {
	d.Helper()
	got := queryOne[[]string](d.before, `select coalesce(array_agg(distinct table_schema::text order by table_schema::text), '{}')
		from information_schema.tables where table_name like 'idem%' and table_schema = any ($1)`, []string{d.public, d.first})
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		d.Error("schemas with tables (-want +got):\n" + diff)
	}
}

func newPartitionedApp(t *testing.T) *app {
	t.Helper()
	pool := poolOf(t, 4)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	testkit.Partition(t, pool)
	return openApp(t, pool)
}
