package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// statementTimeout finds one that is so short that the statements of package idem are canceled,
// and which setting it is.
func (e *examination) statementTimeout(ctx context.Context) ([]Finding, error) {
	limit, err := e.statementLimit(ctx)
	if err != nil || limit == 0 || limit >= e.statement {
		return nil, err
	}
	remedy, err := e.unlimited(ctx, limit)
	return []Finding{{
		Severity: Error, Problem: "Postgres cancels statements so soon that events fail as soon as it has something to do", Evidence: "statement_timeout is " + limit.String(),
		Remedy: remedy,
	}}, err
}

// statementLimit returns the statement_timeout of the application's sessions, 0 for none. A short
// one may end this as well.
func (e *examination) statementLimit(ctx context.Context) (limit time.Duration, err error) {
	for range 10 {
		err = e.pool.QueryRow(ctx, `select current_setting('statement_timeout')::interval`, mode).Scan(&limit)
		if pgtx.SQLState(err) != canceled {
			break
		}
	}
	return limit, err
}

// unlimited returns the statement that removes the statement_timeout of a session, from where it is set.
func (e *examination) unlimited(ctx context.Context, limit time.Duration) (remedy string, err error) {
	const given = "remove statement_timeout from the connection string or the configuration of the pool, or have it be a minute"
	params := e.pool.Config().ConnConfig.RuntimeParams
	if params["statement_timeout"] != "" || strings.Contains(params["options"], "statement_timeout") {
		return given, nil
	}
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
	return "remove statement_timeout from what the application does with each connection, such as AfterConnect of its pool, or from its pooler", nil
}

// durability is about work that a crash of the server would undo.
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
			Remedy: "alter system set fsync = on; select pg_reload_conf()",
		})
	}
	if s.FullPageWrites == "off" {
		found = append(found, Finding{
			Severity: Error, Problem: "a crash of the machine can corrupt tables", Evidence: "full_page_writes is off",
			Remedy: "alter system set full_page_writes = on; select pg_reload_conf(), unless the file system writes pages atomically",
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

// replication is about events that a failover would lose, and replicas that hold up
// the server.
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
		unwatched, err := e.unwatched(ctx)
		if err != nil {
			return found, err
		}
		found = append(found, unwatched...)
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
			Remedy: "start the replica, or set synchronous_standby_names to '' and accept that a failover may lose the last moment",
		})
	}
	return found, nil
}

// unwatched finds a pool that takes a commit after a canceled wait for the replica for
// any other.
func (e *examination) unwatched(ctx context.Context) ([]Finding, error) {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if pgtx.Watched(conn.Conn()) {
		return nil, nil
	}
	return []Finding{{
		Severity: Warning, Problem: "this pool does not notice when somebody cancels a commit's wait for the replica: what was acknowledged then may be lost in a failover",
		Evidence: "synchronous_standby_names is set, and the pool's configuration was not given to idem.WatchCommits",
		Remedy:   "call idem.WatchCommits with the pgxpool.Config of the application before pgxpool.NewWithConfig",
	}}, nil
}

// hidden returns a finding that names facts that the role may not see.
func hidden(what string) Finding {
	return Finding{
		Severity: Info, Problem: "this role may not see " + what, Evidence: "it is no member of pg_read_all_stats",
		Remedy: "grant pg_monitor to it, or ask with another role",
	}
}
