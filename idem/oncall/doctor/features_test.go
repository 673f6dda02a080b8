package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// A function of the schema is in the place of Postgres's, and refuses.
func TestWhatARelativeOfPostgresLacksIsNamed(t *testing.T) {
	t.Parallel()
	const refuse = ` language plpgsql as $$ begin raise 'not supported' using errcode = '0A000'; end $$`
	for name, c := range map[string]struct {
		lack              string
		severity          Severity
		problem, evidence string
	}{
		"a lock that locks nothing": {
			`create function pg_try_advisory_xact_lock(bigint) returns bool language sql as 'select true'`,
			Error, "inboxes and outboxes do not work", "advisory locks: division by zero, 22012",
		},
		"no such lock": {
			`create function pg_try_advisory_xact_lock(bigint) returns bool` + refuse,
			Error, "inboxes and outboxes do not work", "advisory locks: not supported, 0A000",
		},
		"no notifications": {
			`create function pg_notify(text, text) returns void` + refuse,
			Warning, "workers are not woken", "notify: not supported, 0A000",
		},
		"no ctid": {
			`alter table idem_events rename to idem_events_rows; create view idem_events as select * from idem_events_rows`,
			Info, "Prune goes along the primary key", `ctid: column "ctid" does not exist, 42703`,
		},
		"no starts_with": {
			`create function starts_with(text, text) returns bool` + refuse,
			Error, "Prune does not work", "starts_with: not supported, 0A000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, idemtest.URL(t))
			p.exec(c.lack)
			var schema string
			if err := p.pool.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
				t.Fatal(err)
			}
			p.session("options", "-c search_path="+schema+",pg_catalog")
			p.want("features", c.severity, c.problem, c.evidence)
		})
	}
}

func TestTryingFeaturesLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	p.limits.features = append(features, feature{"none", `select no_such_function()`, Info, "nothing", ""})
	p.want("features", Info, "this database lacks something of Postgres: nothing", "42883")
	for _, f := range p.check() {
		if f.Check == "features" && !strings.Contains(f.Evidence, "no_such_function") {
			t.Errorf("on Postgres it finds %s", f)
		}
	}
	p.until(`select (select count(*) from idem_events) + (select count(*) from idem_archive) = 0`)
}

// A table in partitions is as good as a plain one.
func TestPartitionsAreWell(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	sql, err := os.ReadFile("../../../docs/partitioned.sql")
	if err != nil {
		t.Fatal(err)
	}
	p.exec(string(sql))
	for _, f := range p.check() {
		if f.Check == "features" || f.Check == "indexes" || f.Check == "migrations" || f.Check == "rights" {
			t.Errorf("it finds %s", f)
		}
	}
	p.exec(`alter table idem_events_2 set (autovacuum_enabled = off)`)
	p.want("autovacuum", Warning, "nothing removes the dead rows of a table", "autovacuum_enabled is off for idem_events_2")
}
