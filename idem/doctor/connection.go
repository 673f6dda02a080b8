package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pooler finds PgBouncer and its like: it tells its clients a process of Postgres
// that is not the one that answers.
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

// keepalives finds connections of which Postgres would not notice for hours that
// the other end is gone. They may hold an event's row.
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

// clock compares that of this machine with the database's, which decides about
// leases, retries and retention.
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
				Remedy: "see pg_stat_activity for who has them; lower the pools, or raise that limit",
			})
		}
	}
	return found, nil
}
