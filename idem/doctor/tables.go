package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// made is a column that each migration makes: another tool than Migrate may have
// applied them, and recorded that elsewhere.
var made = map[string]struct{ table, column string }{
	"migrations/00001_idem.sql":    {"idem_archive", "body"},
	"migrations/00002_operate.sql": {"idem_audit", "ended_at"},
	"migrations/00003_on_call.sql": {"idem_payloads", "failures"},
}

// unapplied returns the migrations that were not applied, and whether some are not recorded.
func (e *examination) unapplied(ctx context.Context) (missing []string, unrecorded bool, err error) {
	files, err := idem.MissingMigrations(ctx, e.db)
	if err != nil {
		return nil, false, err
	}
	for _, file := range files {
		there, err := one[bool](ctx, e, `select exists (
			select from pg_attribute where attrelid = to_regclass($1) and attname = $2 and not attisdropped)`, made[file].table, made[file].column)
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
			Remedy: "run idem migrate with a role that may create tables; if another tool applies them, run that, or see that the search_path is the application's",
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

// right is one that the application's role needs.
type right struct {
	Role, Table, Verb string
	Has               bool
}

// rightsOf returns the rights that the application's role needs, and whether the role of this
// connection only reads: it may change none of the tables, as that of a person who looks.
func (e *examination) rightsOf(ctx context.Context) (rights []right, reads bool, err error) {
	const list = `select current_user::text, name, verb, has_table_privilege(to_regclass(name), verb)
from (values ('idem_events'), ('idem_payloads'), ('idem_archive'), ('idem_workers'), ('idem_audit'), ('idem_audit_events'), ('idem_prunes'), ('idem_migrations')) as t (name),
	unnest(array['select', 'insert', 'update', 'delete']) with ordinality as v (verb, place)
where to_regclass(name) is not null and (name <> 'idem_migrations' or verb = 'select') and (name not in ('idem_audit', 'idem_audit_events') or verb <> 'delete')
order by name, place`
	rights, err = all[right](ctx, e, list)
	reads = len(rights) > 0 && !slices.ContainsFunc(rights, func(r right) bool { return r.Has && r.Verb != "select" })
	return rights, reads, err
}

// rights finds what the role may not do.
func (e *examination) rights(ctx context.Context) (found []Finding, err error) {
	rights, reads, err := e.rightsOf(ctx)
	if reads {
		found = append(found, Finding{
			Severity: Info, Problem: "this role may only read: whether the application may write is not visible to it", Evidence: rights[0].Role + " may change none of the tables",
			Remedy: "to have that checked, ask with the application's role",
		})
	}
	var table string
	for _, r := range rights {
		if r.Has || reads && r.Verb != "select" {
			continue
		}
		if r.Table != table {
			table = r.Table
			found = append(found, lacking(rights, table, reads))
		}
	}
	return found, err
}

// lacking says what the role may not do with a table.
func lacking(rights []right, table string, reads bool) Finding {
	var role string
	var verbs []string
	for _, r := range rights {
		if r.Table == table && !r.Has && (r.Verb == "select" || !reads) {
			role, verbs = r.Role, append(verbs, r.Verb)
		}
	}
	list := strings.Join(verbs, ", ")
	f := Finding{
		Severity: Error, Problem: "the role lacks rights", Evidence: fmt.Sprintf("%s may not %s on %s", role, list, table),
		Remedy: fmt.Sprintf("grant %s on %s to %s", list, table, role),
	}
	if reads {
		f.Severity, f.Problem = Info, "this role may not see all tables"
	}
	return f
}

func (e *examination) autovacuum(ctx context.Context) (found []Finding, err error) {
	on, err := one[bool](ctx, e, `select current_setting('autovacuum')::bool`)
	if err != nil {
		return nil, err
	}
	if !on {
		found = append(found, Finding{
			Severity: Warning, Problem: "nothing removes dead rows: the tables grow, and workers get slower", Evidence: "autovacuum is off",
			Remedy: "alter system set autovacuum = on; select pg_reload_conf()",
		})
	}
	type table struct {
		Name       string
		Live, Dead int64
		Last       string
		Off        bool
	}
	const list = `select s.relname::text, n_live_tup, n_dead_tup, coalesce(to_char(greatest(last_autovacuum, last_vacuum), 'YYYY-MM-DD HH24:MI'), 'never'),
	'autovacuum_enabled=false' = any (coalesce(c.reloptions, '{}')) or 'autovacuum_enabled=off' = any (coalesce(c.reloptions, '{}'))
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where relid in (to_regclass('idem_events'), to_regclass('idem_payloads'), to_regclass('idem_archive'))
	or relid in (select relid from pg_partition_tree(to_regclass('idem_events')))
order by 1`
	tables, err := all[table](ctx, e, list)
	for _, t := range tables {
		if t.Off {
			found = append(found, Finding{
				Severity: Warning, Problem: "nothing removes the dead rows of a table", Evidence: "autovacuum_enabled is off for " + t.Name,
				Remedy: "alter table " + t.Name + " reset (autovacuum_enabled)",
			})
		}
		if t.Dead > max(e.dead, t.Live/5) {
			found = append(found, Finding{
				Severity: Warning, Problem: "autovacuum is behind", Evidence: fmt.Sprintf("%s has %d dead rows and %d live ones, and was vacuumed last: %s", t.Name, t.Dead, t.Live, t.Last),
				Remedy: "vacuum " + t.Name + "; if the dead rows stay, see the old snapshots; if it happens again, raise autovacuum_max_workers or its cost limit",
			})
		}
	}
	return found, err
}
