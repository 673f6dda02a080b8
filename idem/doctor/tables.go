package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// made is a column that each migration makes: another tool than Migrate may have
// applied them, and recorded that elsewhere.
var made = map[string]struct{ table, column string }{
	"migrations/00001_idem.sql":    {"idem_archive", "body"},
	"migrations/00002_operate.sql": {"idem_audit", "ended_at"},
}

func (e *examination) migrations(ctx context.Context) ([]Finding, error) {
	if first, having, err := store.Schemas(ctx, e.db); err != nil || len(having) > 0 && having[0] != first {
		return nil, err // see schemas
	}
	unrecorded, err := idem.MissingMigrations(ctx, e.pool)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, file := range unrecorded {
		there, err := one[bool](ctx, e, `select exists (
			select from pg_attribute where attrelid = to_regclass($1) and attname = $2 and not attisdropped)`, made[file].table, made[file].column)
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, file)
		}
	}
	if len(missing) > 0 {
		schema, err := one[string](ctx, e, `select coalesce(current_schema(), 'none')`)
		return []Finding{{
			Severity: Error, Problem: "the tables lack migrations of this version", Evidence: strings.Join(missing, ", ") + " in schema " + schema,
			Remedy: "run idem migrate with a role that may create tables; if another tool applies them, run that, or see that the search_path is the application's",
		}}, err
	}
	if len(unrecorded) > 0 {
		return nil, nil
	}
	newest, err := one[int](ctx, e, `select max(version) from idem_migrations`)
	if err != nil || newest <= migrationsHere() {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "the tables are newer than this program", Evidence: fmt.Sprintf("migration %d, this program knows %d", newest, migrationsHere()),
		Remedy: "use the program of the version that is deployed",
	}}, nil
}

// migrationsHere is how many migrations this version has.
func migrationsHere() int {
	files, err := idem.Migrations.ReadDir("migrations")
	if err != nil {
		panic(err) // they are embedded
	}
	return len(files)
}

// indexesNeeded are those of the migrations.
var indexesNeeded = []string{
	"idem_events_pkey", "idem_events_conflicts", "idem_payloads_pkey", "idem_payloads_due", "idem_payloads_lane",
	"idem_payloads_held", "idem_archive_pkey", "idem_workers_pkey", "idem_audit_pkey", "idem_prunes_pkey",
}

func (e *examination) indexes(ctx context.Context) (found []Finding, err error) {
	type index struct{ Name, Wrong string }
	const list = `select name, case when i.indexrelid is null then 'is missing' else 'is not valid' end
from unnest($1::text[]) with ordinality as needed (name, place)
left join pg_index i on i.indexrelid = to_regclass(quote_ident(current_schema()) || '.' || name)
where to_regclass('idem_events') is not null and to_regclass(split_part(name, '_', 1) || '_' || split_part(name, '_', 2)) is not null
	and (i.indexrelid is null or not i.indisvalid or not i.indisready)
order by place`
	all, err := all[index](ctx, e, list, indexesNeeded)
	for _, i := range all {
		f := Finding{
			Severity: Error, Problem: "an index " + i.Wrong + ": duplicates or order are at risk, or every search reads the whole table", Evidence: i.Name,
			Remedy: "run the SQL of idem.Migrations again (idem migrate -print): it makes what is missing",
		}
		if i.Wrong == "is not valid" {
			f.Remedy = "reindex index concurrently " + i.Name
		}
		found = append(found, f)
	}
	return found, err
}

// rights finds what the role of this connection may not do.
func (e *examination) rights(ctx context.Context) (found []Finding, err error) {
	type right struct{ Role, Table, Rights string }
	const list = `select current_user::text, name, string_agg(verb, ', ' order by place)
from (values ('idem_events'), ('idem_payloads'), ('idem_archive'), ('idem_workers'), ('idem_audit'), ('idem_prunes'), ('idem_migrations')) as t (name),
	unnest(array['select', 'insert', 'update', 'delete']) with ordinality as v (verb, place)
where to_regclass(name) is not null and not has_table_privilege(to_regclass(name), verb)
	and (name <> 'idem_migrations' or verb = 'select') and (name <> 'idem_audit' or verb <> 'delete')
group by name order by name`
	all, err := all[right](ctx, e, list)
	for _, r := range all {
		found = append(found, Finding{
			Severity: Error, Problem: "the role lacks rights", Evidence: fmt.Sprintf("%s may not %s on %s", r.Role, r.Rights, r.Table),
			Remedy: fmt.Sprintf("grant %s on %s to %s", r.Rights, r.Table, r.Role),
		})
	}
	return found, err
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
