package doctor

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// A host that publishes the schema public has such default privileges: every new table is open to the roles of its API.
func TestARoleThatMayReadBodiesOrWriteAndNeedNotIsFound(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		grant string // before the tables are made, or after
		found string // evidence
	}{
		"a host publishes the schema":                   {`alter default privileges in schema SCHEMA grant all on tables to ANON`, "ANON may read bodies and write"},
		"it does so for reading only":                   {`alter default privileges in schema SCHEMA grant select on tables to ANON`, "ANON may read bodies"},
		"its role has no more rights than a program":    {`alter default privileges in schema SCHEMA grant select, insert, update, delete on tables to ANON`, "ANON may read bodies and write"},
		"its role can log in":                           {`alter role ANON login; alter default privileges in schema SCHEMA grant all on tables to ANON`, "ANON may read bodies and write"},
		"everybody":                                     {`grant usage on schema SCHEMA to public; grant insert on idem_events to public`, "PUBLIC may write"},
		"everybody may read one column":                 {`grant usage on schema SCHEMA to public; grant select (body) on idem_payloads to public`, "PUBLIC may read bodies"},
		"a report reads the archive":                    {`grant select on idem_archive to ANON`, "ANON may read bodies"},
		"the charges of a package above":                {`create table asaas_charges_since (since date); grant update on asaas_charges_since to ANON`, "ANON may write"},
		"rows are hidden from it, and a policy is not":  {`grant all on all tables in schema SCHEMA to ANON; alter table idem_archive enable row level security; create policy p on idem_archive`, "ANON may read bodies and write"},
		"an application's own role":                     {`alter role ANON login; ` + strings.ReplaceAll(mayAll, "ROLE", "ANON"), ""},
		"a member of the owner's":                       {`do $$ begin execute format('grant %I to ANON', current_user); end $$; grant all on idem_payloads to ANON`, ""},
		"it cannot reach the schema":                    {`revoke usage on schema SCHEMA from ANON; grant all on idem_payloads to ANON`, ""},
		"a monitor counts events":                       {`grant select on idem_events, idem_workers to ANON`, ""},
		"support staff reads the view":                  {`grant select on idem_event_log to ANON`, ""},
		"row level security hides all rows":             {`grant all on idem_payloads to ANON; alter table idem_payloads enable row level security`, ""},
		"an administrator lets it read all of the host": {`grant pg_read_all_stats to ANON`, ""},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, idemtest.URL(t))
			var schema string
			if err := p.Pool.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
				t.Fatal(err)
			}
			anon := schema + "_anon"
			fill := strings.NewReplacer("SCHEMA", schema, "ANON", anon).Replace
			p.Exec(`create role ` + anon + `; grant usage on schema ` + schema + ` to ` + anon)
			t.Cleanup(func() { p.Exec(`drop owned by ` + anon + `; drop role ` + anon) })
			p.wantNo("access", Warning, "")
			if strings.Contains(c.grant, "alter default") { // as the host has done before
				p.Exec(`drop table idem_migrations, idem_events, idem_payloads, idem_archive, idem_workers, idem_prunes, idem_notices, idem_audit, idem_audit_events cascade`)
			}
			p.Exec(fill(c.grant))
			p.migrate()
			if c.found == "" {
				p.wantNo("access", Warning, "")
				return
			}
			p.want("access", Warning, "other roles than the application's may read the bodies of events", fill(c.found))
			for _, f := range p.check() {
				if f.Check == "access" {
					p.follow(f)
				}
			}
			p.wantNo("access", Warning, "")
			p.works("afterwards")
		})
	}
}
