package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const version = `
select 'error', 'this Postgres is older than those that package idem is tested with', 'version ' || current_setting('server_version'), 'upgrade to PostgreSQL 13 or later', ''
where current_setting('server_version_num')::int < @version`

// A role that only reads should have transactions that are read-only.
const writable = `
select 'error', 'this is a replica, which takes no writes', 'pg_is_in_recovery() is true',
	'connect to the primary: target_session_attrs=read-write in the connection string finds it among several hosts', ''
where pg_is_in_recovery()
union all
select 'error', 'transactions are read-only by default: no event can be stored', 'default_transaction_read_only is on',
	'see pg_db_role_setting and the provider of the database: many set it when the disk is full', ''
where current_setting('default_transaction_read_only')::bool and not pg_is_in_recovery()
	and coalesce(has_table_privilege(to_regclass('idem_events'), 'insert, update, delete'), true)`

// statementTimeout finds a statement_timeout that is so short that it cancels the statements of package idem,
// and the place where it is set. It tries again if that cancels this statement.
func (e *examination) statementTimeout(ctx context.Context) (found []Finding, err error) {
	var limit time.Duration
	var s setting
	for range 10 {
		err = e.pool.QueryRow(ctx, `select make_interval(secs => setting::int / 1000.0), `+settingOf, mode, "statement_timeout").
			Scan(&limit, &s.Value, &s.Source, &s.Role, &s.Database)
		if !pgtx.Canceled(err) {
			break
		}
	}
	if err != nil || limit == 0 || limit >= e.statement {
		return nil, err
	}
	f := Finding{
		Severity: Error, Problem: "Postgres cancels statements so soon that events fail as soon as it has something to do", Evidence: "statement_timeout is " + limit.String(),
	}
	switch f.Command = s.alter("reset statement_timeout"); {
	case s.Source == "configuration file":
		f.Command = "alter system set statement_timeout = 0; select pg_reload_conf()"
	case f.Command == "":
		f.Remedy = "remove statement_timeout, or have it be a minute: it is set " + s.place()
	}
	return []Finding{f}, nil
}

// setting is a parameter of this session, and where it is set.
type setting struct{ Value, Source, Role, Database string }

const settingOf = `setting, source, quote_ident(session_user), quote_ident(current_database()) from pg_settings where name = $1`

// alter returns the statement that sets or resets it where it is set; "" if that is no statement's to change.
func (s setting) alter(change string) string {
	switch s.Source {
	case "user":
		return "alter role " + s.Role + " " + change
	case "database":
		return "alter database " + s.Database + " " + change
	case "database user":
		return "alter role " + s.Role + " in database " + s.Database + " " + change
	case "global":
		return "alter role all " + change
	}
	return ""
}

// place says where it is set.
func (s setting) place() string {
	switch s.Source {
	case "default":
		return "nowhere: set it for the role"
	case "configuration file":
		return "in the configuration file of Postgres"
	case "client":
		return "in the connection string or the configuration of the pool, or in PGOPTIONS"
	}
	return "by what the application does with each connection, such as AfterConnect of its pool, or by its pooler"
}

// A crash of the server loses committed work.
const durability = `
select 'error', 'a crash of the machine can lose or corrupt everything', 'fsync is off', '', 'alter system set fsync = on; select pg_reload_conf()'
where not current_setting('fsync')::bool
union all
select 'error', 'a crash of the machine can corrupt tables', 'full_page_writes is off', 'unless the file system writes pages atomically',
	'alter system set full_page_writes = on; select pg_reload_conf()'
where not current_setting('full_page_writes')::bool`

const replication = `
select 'warning', 'a replica is behind: what it lacks is lost if it is promoted now', format('%s is %s, %s MB behind', name, state, lag >> 20),
	'see its load, its network, and queries on it that hold up the replay', ''
from (
	select coalesce(nullif(application_name, ''), client_addr::text, 'pid ' || pid), state, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint
	from pg_stat_replication where not pg_is_in_recovery()
) r (name, state, lag) where lag > @lag
union all
select 'info', 'this role may not see the lag of replicas', 'it is no member of pg_read_all_stats', 'grant pg_monitor to it, or ask with another role', ''
where not pg_is_in_recovery() and not pg_has_role('pg_read_all_stats', 'usage')`

// awaited finds a synchronous replica that commits wait for. The role sees its own sessions that wait, and with more
// rights that no such replica is connected.
func (e *examination) awaited(ctx context.Context) ([]Finding, error) {
	a, err := store.FindAwaited(ctx, e.db)
	if err != nil {
		return nil, err
	}
	if a.Names == "" {
		a.Names, err = one[string](ctx, e, `
select coalesce((select names from current_setting('synchronous_standby_names') names
	where not pg_is_in_recovery() and pg_has_role('pg_read_all_stats', 'usage') and not exists (select from pg_stat_replication where sync_state in ('sync', 'quorum'))), '')`)
	}
	if err != nil || a.Names == "" {
		return nil, err
	}
	return []Finding{{
		Severity: Error, Problem: "commits wait for a replica, and none is connected that counts: nothing is stored",
		Evidence: fmt.Sprintf("synchronous_standby_names is %s; %s, the first for %s", a.Names, counted(a.Sessions, "session waits", "sessions wait"), a.For.Round(time.Second)),
		Remedy:   "start the replica, or accept that a failover may lose the last moment", Command: `alter system set synchronous_standby_names = ''; select pg_reload_conf()`,
	}}, nil
}

// watched finds a pool that does not notice a canceled wait for a synchronous replica.
func (e *examination) watched(ctx context.Context) ([]Finding, error) {
	waits, err := one[bool](ctx, e, `select current_setting('synchronous_standby_names') <> '' and not pg_is_in_recovery()`)
	if err != nil || !waits || pgtx.Watched(e.db.Conn()) {
		return nil, err
	}
	return []Finding{{
		Severity: Warning, Problem: "this pool does not notice when somebody cancels a commit's wait for the replica: what was acknowledged then may be lost in a failover",
		Evidence: "synchronous_standby_names is set, and the pool's configuration was not given to idem.WatchCommits",
		Remedy:   "call idem.WatchCommits with the pgxpool.Config of the application before pgxpool.NewWithConfig",
	}}, nil
}

// pooler finds PgBouncer and similar poolers: the process of Postgres that they announce to a client is not
// the one that answers.
func (e *examination) pooler(ctx context.Context) ([]Finding, error) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	told := conn.Conn().PgConn().PID()
	first, err := backend(ctx, conn)
	if err != nil || told == first {
		return nil, err
	}
	f := Finding{Severity: Info, Problem: "there is a connection pooler, and its mode could not be determined", Evidence: fmt.Sprintf("told process %d, answered by %d", told, first)}
	f.Remedy = "if it pools transactions, add default_query_exec_mode=exec to the connection string, and set PollOnly of an inbox"
	moved, err := e.moves(ctx, conn, first)
	switch mode := e.pool.Config().ConnConfig.DefaultQueryExecMode; {
	case err != nil || !moved:
	case mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol:
		f.Problem, f.Remedy = "a pooler gives each transaction another session", "inboxes need PollOnly; the query mode is right: "+mode.String()
	default:
		f.Severity, f.Problem = Warning, "a pooler gives each transaction another session, and pgx keeps prepared statements"
		f.Evidence += ", query mode " + mode.String()
		f.Remedy = "add default_query_exec_mode=exec to the connection string, and set PollOnly of an inbox"
	}
	return []Finding{f}, err
}

// moves reports whether a connection is answered by another session while a second
// one is in a transaction.
func (e *examination) moves(ctx context.Context, conn *pgxpool.Conn, first uint32) (moved bool, err error) {
	if e.pool.Config().MaxConns < 2 {
		return false, nil
	}
	second, err := e.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer second.Release()
	tx, err := second.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var others uint32
	if err := tx.QueryRow(ctx, `select pg_backend_pid()`, mode).Scan(&others); err != nil {
		return false, err
	}
	again, err := backend(ctx, conn)
	return others == first || again != first, err
}

func backend(ctx context.Context, conn *pgxpool.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, `select pg_backend_pid()`, mode).Scan(&pid)
	return pid, err
}

// Postgres would not notice the end of a connection for hours. It may hold an event's row.
const keepalives = `
select 'info', 'Postgres notices late that a client is cut off, which then keeps its event locked', 'after ' || noticed,
	'add tcp_keepalives_idle=20&tcp_keepalives_interval=5&tcp_keepalives_count=4 to the application''s connection string', ''
from make_interval(secs => current_setting('tcp_keepalives_idle')::int + current_setting('tcp_keepalives_interval')::int * current_setting('tcp_keepalives_count')::int) noticed
where inet_client_addr() is not null and noticed > @silence::interval
union all
select 'info', 'a transaction may stay idle without limit, and keep its event locked', 'idle_in_transaction_session_timeout is 0',
	'add idle_in_transaction_session_timeout=60s to the application''s connection string', ''
where current_setting('idle_in_transaction_session_timeout') = '0'`

// clock compares the clock of this machine with that of the database, which decides about leases, retries and
// retention.
func (e *examination) clock(ctx context.Context) ([]Finding, error) {
	before := e.now()
	theirs, err := one[time.Time](ctx, e, `select clock_timestamp()`)
	after := e.now()
	if err != nil {
		return nil, err
	}
	var skew time.Duration
	switch {
	case theirs.Before(before):
		skew = before.Sub(theirs)
	case theirs.After(after):
		skew = theirs.Sub(after)
	}
	if skew <= e.skew {
		return nil, nil
	}
	return []Finding{{
		Severity: Warning, Problem: "the clocks of this machine and of the database differ",
		Evidence: fmt.Sprintf("by %s: here %s, there %s", skew.Round(time.Millisecond), before.UTC().Format(time.RFC3339), theirs.UTC().Format(time.RFC3339)),
		Remedy:   "synchronize both with NTP: until then signatures with a time may be refused, and delays and the lag of events are wrong",
	}}, nil
}

// Postgres limits the connections of this role, of this database and of all together, and each limit counts its
// own: the server has other applications. Of other roles' sessions a role without rights sees neither the type nor
// the statements.
const connections = `
with clients as (
	select usesysid, datid from pg_stat_activity
	where usesysid is not null and datid is not null and coalesce(backend_type, 'client backend') = 'client backend'
), limits (of, allowed, used) as (
	select 'the server', current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint, (select count(*) from clients)
	union all
	select 'role ' || rolname, rolconnlimit, (select count(*) from clients where usesysid = r.oid) from pg_roles r where rolname = session_user and rolconnlimit >= 0
	union all
	select 'database ' || datname, datconnlimit, (select count(*) from clients where datid = d.oid) from pg_database d where datname = current_database() and datconnlimit >= 0
)
select 'warning', 'the pool has one connection: while a handler has it, deliveries, workers and their signs of life wait', 'pool_max_conns is 1',
	'raise pool_max_conns in the connection string of the application, to 4 or more', ''
where @pool::bigint = 1
union all
select 'warning', 'the pool may open more connections than Postgres grants', format('%s, of %s of %s', @pool::bigint, allowed, of),
	'lower pool_max_conns in the connection string, for all processes together, or raise max_connections or the limit of the role or database', ''
from (select * from limits order by allowed limit 1) tightest where allowed < @pool::bigint
union all
select 'warning', 'the connections are almost all in use: deliveries will be answered 503', format('%s of %s of %s', used, allowed, of),
	'see who has them; lower the pools, or raise that limit', 'select usename, application_name, state, count(*) from pg_stat_activity group by 1, 2, 3 order by 4 desc'
from limits where used > @used::float * allowed`

// What keeps vacuum from removing dead rows has workers read more and more of them.
const snapshots = `
(
	select 'warning', case state when 'idle in transaction' then 'a transaction is left open, and may keep events locked'
			else 'an old transaction keeps dead rows from being removed: workers get slower' end,
		format('pid %s of role %s, program "%s", is %s and %s old', pid, usename, application_name, state, date_trunc('second', now() - xact_start)),
		'wait for its end if it is a dump or a report, else end it', format('select pg_terminate_backend(%s)', pid)
	from pg_stat_activity
	where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - @transaction::interval
		and (backend_xmin is not null or backend_xid is not null or state like 'idle in transaction%')
	order by xact_start limit 5
)
union all
(
	select 'warning', 'a prepared transaction was never ended: it keeps its locks, and dead rows from being removed',
		format('"%s" of %s is %s old', gid, owner, date_trunc('second', now() - prepared)),
		'ask its transaction manager; commit prepared with its name, if it was to be committed, else', format('rollback prepared %L', gid)
	from pg_prepared_xacts where database = current_database() and prepared < now() - @transaction::interval order by prepared limit 5
)
union all
(
	select 'warning', 'a replication slot that nobody reads keeps the write-ahead log until the disk is full' || case when xmin is null then '' else ', and dead rows' end,
		format('%s is %s MB behind', slot_name, behind >> 20), 'start its reader, or, if nobody is to read it,', format('select pg_drop_replication_slot(%L)', slot_name)
	from pg_replication_slots,
		coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn)::bigint, 0) behind
	where not active and behind > @lag order by behind desc limit 5
)
union all
select 'info', 'this role may not see the transactions of other roles', 'it is no member of pg_read_all_stats', 'grant pg_monitor to it, or ask with another role', ''
where not pg_has_role('pg_read_all_stats', 'usage') and exists (select from pg_stat_activity where datname = current_database() and usename <> current_user)`
