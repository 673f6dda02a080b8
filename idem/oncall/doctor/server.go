package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

func (e *examination) version(ctx context.Context) ([]Finding, error) {
	number, err := one[int](ctx, e, `select current_setting('server_version_num')::int`)
	if err != nil || number >= e.limits.version {
		return nil, err
	}
	return []Finding{{
		Severity: Error, Problem: "this Postgres is older than those that package idem is tested with",
		Evidence: fmt.Sprintf("version %d.%d", number/10_000, number%10_000),
		Remedy:   fmt.Sprintf("upgrade to PostgreSQL %d or later", e.limits.version/10_000),
	}}, nil
}

func (e *examination) writable(ctx context.Context) (found []Finding, err error) {
	type state struct{ Replica, ReadOnly bool }
	rows, err := all[state](ctx, e, `select pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool`)
	if err != nil {
		return nil, err
	}
	if rows[0].Replica {
		found = append(found, Finding{
			Severity: Error, Problem: "this is a replica, which takes no writes", Evidence: "pg_is_in_recovery() is true",
			Remedy: "connect to the primary: target_session_attrs=read-write in the connection string finds it among several hosts",
		})
	}
	if rows[0].ReadOnly && !rows[0].Replica {
		if _, reads, err := e.rightsOf(ctx); err != nil || reads { // as such a role should be
			return found, err
		}
		found = append(found, Finding{
			Severity: Error, Problem: "transactions are read-only by default: no event can be stored", Evidence: "default_transaction_read_only is on",
			Remedy: "see pg_db_role_setting and the provider of the database: many set it when the disk is full",
		})
	}
	return found, nil
}

// statementTimeout finds a statement_timeout that is so short that it cancels the statements of package idem,
// and the place where it is set.
func (e *examination) statementTimeout(ctx context.Context) ([]Finding, error) {
	limit, err := e.statementLimit(ctx)
	if err != nil || limit == 0 || limit >= e.statement {
		return nil, err
	}
	f := Finding{
		Severity: Error, Problem: "Postgres cancels statements so soon that events fail as soon as it has something to do", Evidence: "statement_timeout is " + limit.String(),
	}
	params := e.pool.Config().ConnConfig.RuntimeParams
	if params["statement_timeout"] != "" || strings.Contains(params["options"], "statement_timeout") {
		f.Remedy = "remove statement_timeout from the connection string or the configuration of the pool, or have it be a minute"
		return []Finding{f}, nil
	}
	err = e.within(ctx, func() (err error) {
		f.Command, err = e.resetOf(ctx, limit)
		return err
	})
	if f.Command == "" {
		f.Remedy = "remove statement_timeout from what the application does with each connection, such as AfterConnect of its pool, or from its pooler"
	}
	return []Finding{f}, err
}

// statementLimit returns the statement_timeout of the application's sessions, 0 for none. It tries again if a
// short one cancels this statement.
func (e *examination) statementLimit(ctx context.Context) (limit time.Duration, err error) {
	for range 10 {
		err = e.pool.QueryRow(ctx, `select current_setting('statement_timeout')::interval`, mode).Scan(&limit)
		if pgtx.SQLState(err) != canceled {
			break
		}
	}
	return limit, err
}

// resetOf returns the statement that removes the statement_timeout of a session from the place where it is set, ""
// if the server does not set it.
func (e *examination) resetOf(ctx context.Context, limit time.Duration) (string, error) {
	type setting struct {
		Reset string
		Value time.Duration
	}
	const list = `
select reset, (value || case when value ~ '^\d+$' then 'ms' else '' end)::interval from (
	select case
			when setrole <> 0 and setdatabase <> 0 then format('alter role %I in database %I reset statement_timeout', session_user, current_database())
			when setrole <> 0 then format('alter role %I reset statement_timeout', session_user)
			when setdatabase <> 0 then format('alter database %I reset statement_timeout', current_database())
			else 'alter role all reset statement_timeout' end,
		split_part(c, '=', 2), case when setrole <> 0 then 0 else 2 end + case when setdatabase <> 0 then 0 else 1 end
	from pg_db_role_setting, unnest(setconfig) c
	where setdatabase in (0, (select oid from pg_database where datname = current_database()))
		and setrole in (0, (select oid from pg_roles where rolname = session_user)) and c like 'statement_timeout=%'
	union all
	select 'alter system set statement_timeout = 0; select pg_reload_conf()', reset_val, 4 from pg_settings where name = 'statement_timeout'
) s (reset, value, place) order by place`
	settings, err := all[setting](ctx, e, list)
	if err != nil {
		return "", err
	}
	if s := settings[0]; s.Value == limit { // of several, Postgres takes the first
		return s.Reset, nil
	}
	return "", nil
}

// durability finds settings with which a crash of the server loses committed work.
func (e *examination) durability(ctx context.Context) (found []Finding, err error) {
	type settings struct{ Fsync, FullPageWrites, Commit string }
	rows, err := all[settings](ctx, e, `select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')`)
	if err != nil {
		return nil, err
	}
	s := rows[0]
	if s.Fsync == "off" {
		found = append(found, Finding{
			Severity: Error, Problem: "a crash of the machine can lose or corrupt everything", Evidence: "fsync is off",
			Command: "alter system set fsync = on; select pg_reload_conf()",
		})
	}
	if s.FullPageWrites == "off" {
		found = append(found, Finding{
			Severity: Error, Problem: "a crash of the machine can corrupt tables", Evidence: "full_page_writes is off",
			Remedy: "unless the file system writes pages atomically", Command: "alter system set full_page_writes = on; select pg_reload_conf()",
		})
	}
	if s.Commit == "off" {
		found = append(found, Finding{
			Severity: Info, Problem: "commits do not wait for the disk by default; those that an acknowledgement depends on do all the same",
			Evidence: "synchronous_commit is off",
		})
	}
	return found, nil
}

// replication finds replicas that are behind, and commits that wait for a replica that is not there.
func (e *examination) replication(ctx context.Context) (found []Finding, err error) {
	if replica, err := one[bool](ctx, e, `select pg_is_in_recovery()`); err != nil || replica {
		return nil, err
	}
	type settings struct {
		Level, Names string
		Sees         bool
	}
	const ask = `select current_setting('wal_level'), current_setting('synchronous_standby_names'), pg_has_role('pg_read_all_stats', 'usage')`
	rows, err := all[settings](ctx, e, ask)
	if err != nil {
		return nil, err
	}
	s := rows[0]
	if s.Level == "minimal" {
		found = append(found, Finding{
			Severity: Info, Problem: "this server can have no replica, and no backup to a point in time", Evidence: "wal_level is minimal",
			Remedy: "set wal_level = replica, and restart",
		})
	}
	if s.Names != "" {
		found = append(found, e.unwatched()...)
	}
	if !s.Sees {
		return append(found, hidden("the lag of replicas")), nil
	}
	type replica struct {
		Name, State, Sync string
		Lag               int64
	}
	const lag = `select coalesce(nullif(application_name, ''), client_addr::text, 'pid ' || pid), coalesce(state, ''), coalesce(sync_state, ''),
		coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint from pg_stat_replication order by 1`
	replicas, err := all[replica](ctx, e, lag)
	if err != nil {
		return found, err
	}
	waits := s.Names != ""
	for _, r := range replicas {
		if r.Sync == "sync" || r.Sync == "quorum" {
			waits = false
		}
		if r.Lag > e.lag {
			found = append(found, Finding{
				Severity: Warning, Problem: "a replica is behind: what it lacks is lost if it is promoted now",
				Evidence: fmt.Sprintf("%s is %s, %d MB behind", r.Name, r.State, r.Lag>>20),
				Remedy:   "see its load, its network, and queries on it that hold up the replay",
			})
		}
	}
	if waits {
		found = append(found, Finding{
			Severity: Error, Problem: "commits wait for a replica, and none is connected that counts: nothing is stored", Evidence: "synchronous_standby_names is " + s.Names,
			Remedy: "start the replica, or accept that a failover may lose the last moment", Command: "alter system set synchronous_standby_names = ''; select pg_reload_conf()",
		})
	}
	return found, nil
}

// unwatched finds a pool that does not notice a canceled wait for a synchronous replica.
func (e *examination) unwatched() []Finding {
	if pgtx.Watched(e.db.Conn()) {
		return nil
	}
	return []Finding{{
		Severity: Warning, Problem: "this pool does not notice when somebody cancels a commit's wait for the replica: what was acknowledged then may be lost in a failover",
		Evidence: "synchronous_standby_names is set, and the pool's configuration was not given to idem.WatchCommits",
		Remedy:   "call idem.WatchCommits with the pgxpool.Config of the application before pgxpool.NewWithConfig",
	}}
}

// hidden returns a finding about facts that the role may not see.
func hidden(what string) Finding {
	return Finding{
		Severity: Info, Problem: "this role may not see " + what, Evidence: "it is no member of pg_read_all_stats",
		Remedy: "grant pg_monitor to it, or ask with another role",
	}
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

// keepalives finds connections whose end Postgres would not notice for hours. They may hold an event's row.
func (e *examination) keepalives(ctx context.Context) (found []Finding, err error) {
	type settings struct {
		TCP                   bool
		Idle, Interval, Count int64
		Timeout               string
	}
	const ask = `select inet_client_addr() is not null, current_setting('tcp_keepalives_idle')::bigint,
		current_setting('tcp_keepalives_interval')::bigint, current_setting('tcp_keepalives_count')::bigint,
		current_setting('idle_in_transaction_session_timeout')`
	rows, err := all[settings](ctx, e, ask)
	if err != nil {
		return nil, err
	}
	s := rows[0]
	noticed := time.Duration(s.Idle+s.Interval*s.Count) * time.Second
	if s.TCP && noticed > e.silence {
		found = append(found, Finding{
			Severity: Info, Problem: "Postgres notices late that a client is cut off, which then keeps its event locked",
			Evidence: "after " + noticed.String(),
			Remedy:   "add tcp_keepalives_idle=20&tcp_keepalives_interval=5&tcp_keepalives_count=4 to the application's connection string",
		})
	}
	if s.Timeout == "0" {
		found = append(found, Finding{
			Severity: Info, Problem: "a transaction may stay idle without limit, and keep its event locked", Evidence: "idle_in_transaction_session_timeout is 0",
			Remedy: "add idle_in_transaction_session_timeout=60s to the application's connection string",
		})
	}
	return found, nil
}

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

// connections compares the pool with the limits that Postgres sets to this role, this database and all
// together, each with those that count for it: the server has other applications.
func (e *examination) connections(ctx context.Context) (found []Finding, err error) {
	type limit struct {
		Of            string
		Allowed, Used int64
	}
	// Of other roles' sessions a role without rights sees neither the type nor the statements.
	const ask = `
with clients as (
	select usesysid, datid from pg_stat_activity
	where usesysid is not null and datid is not null and coalesce(backend_type, 'client backend') = 'client backend'
)
select 'the server', current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint, (select count(*) from clients)
union all
select 'role ' || rolname, rolconnlimit, (select count(*) from clients where usesysid = r.oid) from pg_roles r where rolname = session_user and rolconnlimit >= 0
union all
select 'database ' || datname, datconnlimit, (select count(*) from clients where datid = d.oid) from pg_database d where datname = current_database() and datconnlimit >= 0`
	limits, err := all[limit](ctx, e, ask)
	if err != nil {
		return nil, err
	}
	tightest := slices.MinFunc(limits, func(a, b limit) int { return cmp.Compare(a.Allowed, b.Allowed) })
	if most := int64(e.pool.Config().MaxConns); most > tightest.Allowed {
		found = append(found, Finding{
			Severity: Warning, Problem: "the pool may open more connections than Postgres grants", Evidence: fmt.Sprintf("%d, of %d of %s", most, tightest.Allowed, tightest.Of),
			Remedy: "lower pool_max_conns in the connection string, for all processes together, or raise max_connections or the limit of the role or database",
		})
	}
	for _, l := range limits {
		if float64(l.Used) > e.used*float64(l.Allowed) {
			found = append(found, Finding{
				Severity: Warning, Problem: "the connections are almost all in use: deliveries will be answered 503", Evidence: fmt.Sprintf("%d of %d of %s", l.Used, l.Allowed, l.Of),
				Remedy:  "see who has them; lower the pools, or raise that limit",
				Command: "select usename, application_name, state, count(*) from pg_stat_activity group by 1, 2, 3 order by 4 desc",
			})
		}
	}
	return found, nil
}
