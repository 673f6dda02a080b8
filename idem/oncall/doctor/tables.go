package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/migrate"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// marks has a column that each migration makes: another tool than Migrate may have
// applied them, and recorded that elsewhere.
var marks = map[string]struct{ table, column string }{
	"migrations/00001_idem.sql":        {"idem_archive", "body"},
	"migrations/00002_operate.sql":     {"idem_audit", "ended_at"},
	"migrations/00003_on_call.sql":     {"idem_payloads", "failures"},
	"migrations/00004_acknowledge.sql": {"idem_payloads", "acknowledged_at"},
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

// right is one that the application's role needs.
type right struct {
	Role, Table, Verb string
	Has               bool
}

// rightsOf returns the rights that the application's role needs. reads reports that the role of this
// connection may only read, as a person's role.
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

// rights finds missing rights of the role.
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
	if err != nil {
		return found, err
	}
	hidden, err := one[[]string](ctx, e, `select array(select c.relname::text from pg_class c where c.oid in (`+
		`to_regclass('idem_events'), to_regclass('idem_payloads'), to_regclass('idem_archive'), to_regclass('idem_workers'), to_regclass('idem_prunes'), to_regclass('idem_audit'), to_regclass('idem_audit_events')) `+
		`and row_security_active(c.oid) order by 1)`)
	for _, table := range hidden {
		found = append(found, Finding{
			Severity: Error, Problem: "row level security hides the rows of " + table + " from this role: events cannot be stored, and those that are stored are not seen",
			Evidence: "somebody has enabled it, as the host of a database may do for every new table", Command: "alter table " + table + " disable row level security",
		})
	}
	return found, err
}

// lacking returns the finding about a table's missing rights.
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
		Command: fmt.Sprintf("grant %s on %s to %s", list, table, role),
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
			Command: "alter system set autovacuum = on; select pg_reload_conf()",
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
				Command: "alter table " + t.Name + " reset (autovacuum_enabled)",
			})
		}
		if t.Dead > max(e.dead, t.Live/5) {
			found = append(found, Finding{
				Severity: Warning, Problem: "autovacuum is behind", Evidence: fmt.Sprintf("%s has %d dead rows and %d live ones, and was vacuumed last: %s", t.Name, t.Dead, t.Live, t.Last),
				Remedy:  "if the dead rows stay, see the old snapshots; if it happens again, raise autovacuum_max_workers or its cost limit",
				Command: "vacuum " + t.Name,
			})
		}
	}
	return found, err
}

// schemas finds tables that the search_path hides, or that a first schema without
// tables is about to hide.
func (e *examination) schemas(ctx context.Context) ([]Finding, error) {
	first, having, err := store.Schemas(ctx, e.db)
	if err != nil || len(having) == 0 {
		return nil, err
	}
	if having[0] != first {
		return []Finding{{
			Severity: Error, Problem: "the first schema of the search_path has no tables, and a later one has: whoever makes them there makes done events run again",
			Evidence: fmt.Sprintf("%s has none, the tables are in %s", first, strings.Join(having, ", ")),
			Remedy:   fmt.Sprintf("put %s first in the search_path of this role or connection; only if %s is to have its own", having[0], first),
			Command:  "idem migrate -schema " + first,
		}}, nil
	}
	if len(having) == 1 {
		return nil, nil
	}
	f := Finding{
		Severity: Info, Problem: "there are several sets of tables along the search_path, and the first one is used",
		Evidence: "in the schemas " + strings.Join(having, ", "),
	}
	var used []bool
	for _, schema := range having {
		has, err := one[bool](ctx, e, `select exists (select from `+pgx.Identifier{schema, "idem_events"}.Sanitize()+`)`)
		if err != nil {
			return []Finding{f}, fmt.Errorf("looking for events in schema %s: %w", schema, err)
		}
		used = append(used, has)
	}
	for n, has := range used {
		if has && !used[0] {
			f.Severity, f.Problem = Error, "the first set of tables along the search_path has no event, and a later one has: those that are done run again, and those that wait are not processed"
			f.Evidence = fmt.Sprintf("%s has none, %s has", having[0], having[n])
			f.Remedy = fmt.Sprintf("put %s first in the search_path of this role or connection, unless %s is new on purpose", having[n], having[0])
			break
		}
	}
	return []Finding{f}, nil
}

// planRows is the number of rows of no source that the migrations insert into idem_payloads.
const planRows = 300

// plans finds that these rows were deleted.
func (e *examination) plans(ctx context.Context) ([]Finding, error) {
	n, err := one[int](ctx, e, `select count(*)::int from idem_payloads where event >= '//' and event < '/0' and source = ''`)
	if err != nil || n >= planRows {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "the rows that keep plans good are gone: after the table was empty, deliveries and workers read all of it until it is analyzed",
		Evidence: fmt.Sprintf("idem_payloads has %d rows of no source, not %d", n, planRows),
		Command: fmt.Sprintf(`insert into idem_payloads (event, source, received_at, body) select '//' || n, '', now(), convert_to(repeat(' ', 400), 'UTF8') `+
			`from generate_series(1, %d) n on conflict do nothing; analyze idem_payloads`, planRows),
	}}, nil
}

// snapshots finds old snapshots. They keep vacuum from removing dead rows, and workers read more and more of
// those.
func (e *examination) snapshots(ctx context.Context) (found []Finding, err error) {
	for _, look := range []func(context.Context) ([]Finding, error){e.transactions, e.prepared, e.slots} {
		some, err := look(ctx)
		found = append(found, some...)
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func (e *examination) transactions(ctx context.Context) (found []Finding, err error) {
	type transaction struct {
		PID                  int32
		Role, Program, State string
		Age                  time.Duration
		Waits                bool
	}
	const list = `select pid, coalesce(usename, ''), application_name, coalesce(state, ''), now() - xact_start, state = 'idle in transaction'
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - $1::interval
	and (backend_xmin is not null or backend_xid is not null or state like 'idle in transaction%')
order by xact_start limit 5`
	transactions, err := all[transaction](ctx, e, list, e.transaction)
	if err != nil {
		return nil, err
	}
	for _, t := range transactions {
		f := Finding{
			Severity: Warning, Problem: "an old transaction keeps dead rows from being removed: workers get slower",
			Evidence: fmt.Sprintf("pid %d of role %s, program %q, is %s and %s old", t.PID, t.Role, t.Program, t.State, t.Age.Round(time.Second)),
			Remedy:   "wait for its end if it is a dump or a report, else end it", Command: fmt.Sprintf("select pg_terminate_backend(%d)", t.PID),
		}
		if t.Waits {
			f.Problem = "a transaction is left open, and may keep events locked"
		}
		found = append(found, f)
	}
	others, err := one[bool](ctx, e, `select not pg_has_role('pg_read_all_stats', 'usage') and exists (
		select from pg_stat_activity where datname = current_database() and usename <> current_user)`)
	if others {
		found = append(found, hidden("the transactions of other roles"))
	}
	return found, err
}

func (e *examination) prepared(ctx context.Context) (found []Finding, err error) {
	type prepared struct {
		ID, Owner string
		Age       time.Duration
	}
	const list = `select gid, owner::text, now() - prepared from pg_prepared_xacts
where database = current_database() and prepared < now() - $1::interval order by prepared limit 5`
	all, err := all[prepared](ctx, e, list, e.transaction)
	for _, p := range all {
		found = append(found, Finding{
			Severity: Warning, Problem: "a prepared transaction was never ended: it keeps its locks, and dead rows from being removed",
			Evidence: fmt.Sprintf("%q of %s is %s old", p.ID, p.Owner, p.Age.Round(time.Second)),
			Remedy:   "ask its transaction manager; commit prepared with its name, if it was to be committed, else", Command: "rollback prepared '" + strings.ReplaceAll(p.ID, "'", "''") + "'",
		})
	}
	return found, err
}

func (e *examination) slots(ctx context.Context) (found []Finding, err error) {
	type slot struct {
		Name   string
		Active bool
		Behind int64
		Holds  bool
	}
	const list = `select slot_name::text, active, behind, xmin is not null from (
	select *, coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn), 0)::bigint as behind
	from pg_replication_slots) s where not active and behind > $1 order by behind desc limit 5`
	all, err := all[slot](ctx, e, list, e.lag)
	for _, s := range all {
		f := Finding{
			Severity: Warning, Problem: "a replication slot that nobody reads keeps the write-ahead log until the disk is full",
			Evidence: fmt.Sprintf("%s is %d MB behind", s.Name, s.Behind>>20),
			Remedy:   "start its reader, or, if nobody is to read it,", Command: fmt.Sprintf("select pg_drop_replication_slot('%s')", s.Name),
		}
		if s.Holds {
			f.Problem += ", and dead rows"
		}
		found = append(found, f)
	}
	return found, err
}

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
