package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/migrate"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// marks has a column that each migration makes: another tool than Migrate may have
// applied them, and recorded that elsewhere.
var marks = map[string]struct{ table, column string }{
	"migrations/00001_idem.sql": {"idem_audit_events", "result"},
}

// unapplied returns the migrations that were not applied, and whether some are not recorded.
func (e *examination) unapplied(ctx context.Context) (missing []string, unrecorded bool, err error) {
	files, err := MissingMigrations(ctx, e.db)
	if err != nil {
		return nil, false, err
	}
	for _, file := range files {
		there, err := one[bool](ctx, e, `select exists (
			select from pg_attribute where attrelid = to_regclass($1) and attname = $2 and not attisdropped)`, marks[file].table, marks[file].column)
		if err != nil {
			return nil, false, err
		}
		if !there {
			missing = append(missing, file)
		}
	}
	return missing, len(files) > 0, nil
}

func (e *examination) migrations(ctx context.Context) ([]Finding, error) {
	if first, having, err := store.Schemas(ctx, e.db); err != nil || len(having) > 0 && having[0] != first {
		return nil, err // see schemas
	}
	missing, unrecorded, err := e.unapplied(ctx)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		schema, err := one[string](ctx, e, `select coalesce(current_schema(), 'none')`)
		return []Finding{{
			Severity: Error, Problem: "the tables lack migrations of this version", Evidence: strings.Join(missing, ", ") + " in schema " + schema,
			Remedy:  "with a role that may create tables; if another tool applies them, run that, or see that the search_path is the application's",
			Command: "idem migrate",
		}}, err
	}
	if unrecorded {
		return nil, nil
	}
	newest, err := one[int](ctx, e, `select max(version) from idem_migrations`)
	if err != nil || newest <= len(migrationFiles()) {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "the tables are newer than this program", Evidence: fmt.Sprintf("migration %d, this program knows %d", newest, len(migrationFiles())),
		Remedy: "use the program of the version that is deployed",
	}}, nil
}

// migrationFiles are those of this version, in order.
func migrationFiles() []string {
	files, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is one
	}
	return files
}

// The rights that the application's role needs. A role that may change nothing is a person's.
const rights = `
with tables (name) as (
	select * from unnest(array['idem_events', 'idem_payloads', 'idem_archive', 'idem_workers', 'idem_prunes', 'idem_pauses', 'idem_notices', 'idem_audit', 'idem_audit_events', 'idem_migrations']) name
	where to_regclass(name) is not null
), rights as (
	select name, verb, place, has_table_privilege(to_regclass(name), verb) as has
	from tables, unnest(array['select', 'insert', 'update', 'delete']) with ordinality as v (verb, place)
	where (name <> 'idem_migrations' or verb = 'select') and (name not in ('idem_audit', 'idem_audit_events') or verb <> 'delete')
), role (reads) as (
	select not bool_or(has and verb <> 'select') from rights
), lacks (name, verbs) as (
	select name, string_agg(verb, ', ' order by place) from rights, role where not has and (verb = 'select' or not reads) group by name order by name
)
select 'info', 'this role may only read: whether the application may write is not visible to it', current_user || ' may change none of the tables',
	'to have that checked, ask with the application''s role', ''
from role where reads
union all
select case when reads then 'info' else 'error' end, case when reads then 'this role may not see all tables' else 'the role lacks rights' end,
	format('%s may not %s on %s', current_user, verbs, name), '', format('grant %s on %s to %I', verbs, name, current_user)
from lacks, role
union all
select 'error', 'row level security hides the rows of ' || name || ' from this role: events cannot be stored, and those that are stored are not seen',
	'somebody has enabled it, as the host of a database may do for every new table', '', 'alter table ' || name || ' disable row level security'
from tables where row_security_active(to_regclass(name)::oid)`

const autovacuum = `
with tables as (
	select s.relname as name, n_live_tup as live, n_dead_tup as dead, coalesce(to_char(greatest(last_autovacuum, last_vacuum), 'YYYY-MM-DD HH24:MI'), 'never') as last,
		coalesce(c.reloptions, '{}') && array['autovacuum_enabled=false', 'autovacuum_enabled=off'] as off
	from pg_stat_user_tables s join pg_class c on c.oid = s.relid
	where relid in (to_regclass('idem_events'), to_regclass('idem_payloads'), to_regclass('idem_archive'))
		or relid in (select relid from pg_partition_tree(to_regclass('idem_events')))
	order by 1
)
select 'warning', 'nothing removes dead rows: the tables grow, and workers get slower', 'autovacuum is off', '', 'alter system set autovacuum = on; select pg_reload_conf()'
where not current_setting('autovacuum')::bool
union all
select 'warning', 'nothing removes the dead rows of a table', 'autovacuum_enabled is off for ' || name, '', 'alter table ' || name || ' reset (autovacuum_enabled)'
from tables where off
union all
select 'warning', 'autovacuum is behind', format('%s has %s dead rows and %s live ones, and was vacuumed last: %s', name, dead, live, last),
	'if the dead rows stay, see the old snapshots; if it happens again, raise autovacuum_max_workers or its cost limit', 'vacuum ' || name
from tables where dead > greatest(@dead, live / 5)`

// schemas finds that the search_path leads, or is about to lead, to other tables than those that the events are in. Its
// remedy makes no tables: with a second set, what is done in the first one runs again.
func (e *examination) schemas(ctx context.Context) ([]Finding, error) {
	first, having, err := store.Schemas(ctx, e.db)
	if err != nil || len(having) == 0 {
		return nil, err
	}
	if having[0] != first {
		f := Finding{
			Severity: Error, Problem: "the first schema of the search_path has no tables, and a later one has: whoever makes them there makes done events run again",
			Evidence: fmt.Sprintf("%s has none, the tables are in %s", first, strings.Join(having, ", ")),
		}
		f.Remedy, f.Command, err = e.pathBack(ctx, having[0])
		return []Finding{f}, err
	}
	if len(having) == 1 {
		return nil, nil
	}
	empty, err := e.without(ctx, having)
	if err != nil {
		return nil, err
	}
	sets := "in the schemas " + strings.Join(having, ", ")
	if empty == having[0] && len(having) > 1 {
		f := Finding{
			Severity: Error, Problem: "the first set of tables along the search_path has no event, and a later one has: those that are done run again, and those that wait are not processed",
			Evidence: fmt.Sprintf("%s; %s has none", sets, empty),
		}
		f.Remedy, f.Command, err = e.pathBack(ctx, having[1])
		f.Remedy = fmt.Sprintf("unless %s is new on purpose, ", empty) + f.Remedy
		return []Finding{f}, err
	}
	if empty != "" {
		return []Finding{{
			Severity: Error, Problem: "a later set of tables along the search_path has no event: where it comes first, events that are done run again",
			Evidence: fmt.Sprintf("%s; %s has none", sets, empty), Remedy: fmt.Sprintf("take %s out of the search_path; drop its tables if nobody uses them", empty),
		}}, nil
	}
	found, err := e.ofEach(func(s source) (*Finding, error) {
		hidden, err := store.FindHidden(ctx, e.db, s.name)
		if err != nil || hidden == "" {
			return nil, err
		}
		return &Finding{
			Severity: Error, Problem: "its events are in two sets of tables: those that are done in the hidden one run again when they are delivered again, and those that wait there are not processed",
			Evidence: fmt.Sprintf("%s; the events are stored in %s, and %s is hidden", sets, having[0], hidden),
			Remedy: fmt.Sprintf("stop the application; copy the rows of idem_events and idem_payloads that one set lacks from the other, and drop that; only then start it, with the set that is left first in the search_path. "+
				"If %s is no more than another program's, take it out of the search_path", hidden),
		}, nil
	})
	if err != nil || found != nil {
		return found, err
	}
	return []Finding{{Severity: Info, Problem: "there are several sets of tables along the search_path, and the first one is used", Evidence: sets}}, nil
}

// without returns the first of these schemas that has no event; "" if each has one.
func (e *examination) without(ctx context.Context, schemas []string) (string, error) {
	for _, schema := range schemas {
		has, err := one[bool](ctx, e, `select exists (select from `+pgx.Identifier{schema, "idem_events"}.Sanitize()+`)`)
		if err != nil {
			return "", fmt.Errorf("looking for events in schema %s: %w", schema, err)
		}
		if !has {
			return schema, nil
		}
	}
	return "", nil
}

// pathBack says how a schema becomes the first of the search_path, at the place where that is set.
func (e *examination) pathBack(ctx context.Context, schema string) (remedy, command string, err error) {
	found, err := all[setting](ctx, e, "select "+settingOf, "search_path")
	if err != nil {
		return "", "", err
	}
	s := found[0]
	quoted, err := one[string](ctx, e, `select quote_ident($1)`, schema)
	if err != nil {
		return "", "", err
	}
	path := []string{quoted}
	for other := range strings.SplitSeq(s.Value, ",") {
		if other = strings.TrimSpace(other); other != schema && other != quoted {
			path = append(path, other)
		}
	}
	remedy = fmt.Sprintf("put %s back as the first schema of the search_path, and start the application again", schema)
	if command = s.alter("set search_path = " + strings.Join(path, ", ")); command == "" {
		remedy += ": it is set " + s.place()
	}
	return remedy, command, nil
}

// Package asaas/charges has made them. An empty table would set orders to less than was paid, so there is no command.
const charges = `
select 'error', 'a table of charges is gone, and all that was in it: no event of a charge can be booked', string_agg(name, ', ' order by name),
	'stop the application, and restore the table from a backup: with an empty one, orders would be set to less than was paid', ''
from unnest(array['asaas_charges', 'asaas_charges_since', 'asaas_charges_runs', 'asaas_statement', 'asaas_statement_days']) name
where to_regclass('asaas_charges_migrations') is not null and to_regclass(name) is null having count(*) > 0`

// The migrations insert rows of no source into idem_payloads.
const plans = `
select 'warning', 'the rows that keep plans good are gone: after the table was empty, deliveries and workers read all of it until it is analyzed',
	format('idem_payloads has %s rows of no source, not 300', n), '',
	$$insert into idem_payloads (event, source, received_at, body) select '//' || n, '', now(), convert_to(repeat(' ', 400), 'UTF8') from generate_series(1, 300) n on conflict do nothing; analyze idem_payloads$$
from (select count(*) from idem_payloads where event >= '//' and event < '/0' and source = '') t (n) where n < 300`

// MissingMigrations returns the files of [idem.Migrations] that [idem.Migrate] would apply now, without applying any.
// Files that another tool has applied are among them, unless the tool recorded them in idem_migrations. If
// Migrate would refuse, MissingMigrations returns the same error.
func MissingMigrations(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) (files []string, err error) {
	if files, err = migrate.Missing(ctx, db, "", idem.Migrations); err != nil {
		return nil, fmt.Errorf("doctor: looking for migrations: %w", err)
	}
	return files, nil
}
