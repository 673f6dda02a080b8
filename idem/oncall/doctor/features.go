package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	nothingWorks = "no mode works"
	noInbox      = "inboxes and outboxes do not work"
	usePostgres  = "use PostgreSQL 13 or later for these tables: docs/scale.md says which relatives were looked at"
	useInline    = "receive with a Processor, or use PostgreSQL for these tables"
)

// features are the features of Postgres that each mode needs, in the order of docs/scale.md.
var features = []feature{
	{
		"on conflict", `insert into idem_events (event, type, key, state) values ('//doctor', '', '', 'done') on conflict do nothing returning event`,
		Error, nothingWorks, usePostgres,
	},
	{
		"several changes in one statement", `
with marked as (
	insert into idem_events (event, type, key, state) values ('//doctor', '', '', 'done') on conflict do nothing returning event
), kept as (
	insert into idem_archive (event, received_at, body) select event, now(), ''::bytea from marked on conflict do nothing
)
select count(*) from marked`,
		Error, nothingWorks, usePostgres,
	},
	{
		"skip locked", `select event from idem_events where event = '//doctor' for update skip locked`,
		Error, nothingWorks, usePostgres,
	},
	{
		"settings of one transaction", `
select case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end,
	set_config('lock_timeout', '500ms', true), current_setting('synchronous_standby_names')`,
		Error, nothingWorks, usePostgres,
	},
	{
		"pg_terminate_backend", `select pg_terminate_backend(pid) from pg_stat_activity where pid = -1 and xact_start = now()`,
		Warning, "a transaction whose connection was cut may hold its event until the server notices", "set idle_in_transaction_session_timeout to 60s",
	},
	{
		// Some databases accept the lock and take none. The second statement divides by the number of locks held, so
		// it fails there.
		"advisory locks", `
select pg_try_advisory_xact_lock(hashtextextended('//doctor', 'idem_events'::regclass::oid::bigint));
select 1 / count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
		Error, noInbox + ", nor does a second delivery of an event that has failed, nor Replay", usePostgres,
	},
	{
		"arrays of rows", `select * from unnest(array['a']::text[], array[''::bytea]) with ordinality as i (event, body, place)`,
		Error, noInbox, useInline,
	},
	{
		"locks of one table of a join", `
select e.event, row_number() over (partition by e.crashes) from (
	select e.event, e.crashes from idem_payloads p join idem_events e using (event)
	where p.source = '//doctor' order by p.due_at limit 1 for update of e skip locked) e`,
		Error, noInbox, useInline,
	},
	{
		"planner settings", `
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)`,
		Error, noInbox, useInline,
	},
	{
		"listen", `listen idem_doctor`,
		Warning, "workers are not woken, and find events within Poll", "set PollOnly of inboxes and outboxes",
	},
	{
		"notify", `select pg_notify('idem_doctor', '')`,
		Warning, "workers are not woken, and find events within Poll", "set PollOnly of inboxes and outboxes",
	},
	{
		"ctid", `
select count(*) from idem_events where ctid >= format('(%s,0)', 0)::tid and ctid < format('(%s,0)', 0)::tid
	and pg_relation_size('idem_events'::regclass) > 0 and exists (select from pg_partition_tree('idem_events'::regclass))`,
		Info, "Prune goes along the primary key instead, which takes longer", "",
	},
	{
		"starts_with", `select starts_with('asaas//1', 'asaas/')`,
		Error, "Prune does not work, and the tables grow", usePostgres,
	},
	{
		"lateral", `select count(*) from idem_payloads p cross join lateral (select * from idem_events where event = p.event offset 0) e where p.source = '//doctor'`,
		Error, "List, Stats and what operators use do not work", usePostgres,
	},
}

// rightsErrors and damageErrors are SQLSTATEs that other checks report: missing privileges, a read-only
// transaction, altered tables.
var (
	rightsErrors = []string{"42501", "25006"}
	damageErrors = []string{"42P01", "42P10", "42703", "42804", "42883", "23502"}
)

// features tries the features of Postgres that the modes need.
func (e *examination) features(ctx context.Context) (found []Finding, err error) {
	if e.refused {
		return nil, nil // see triggers
	}
	for _, f := range e.limits.features {
		err := e.try(ctx, f.try)
		var refused *pgconn.PgError
		switch {
		case err == nil:
		case !errors.As(err, &refused):
			return found, err
		case slices.Contains(rightsErrors, refused.Code):
		case e.damaged && f.name != "ctid" && slices.Contains(damageErrors, refused.Code):
		default:
			found = append(found, Finding{
				Severity: f.severity, Problem: "this database lacks something of Postgres: " + f.without,
				Evidence: f.name + ": " + refused.Message + ", " + refused.Code, Remedy: f.remedy,
			})
		}
	}
	return found, nil
}
