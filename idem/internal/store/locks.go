package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// LockHolder is a session that uses a table of the current schema.
type LockHolder struct {
	PID         int32
	Table       string
	Role        string
	Application string
	OpenFor     time.Duration // the age of its transaction; 0 if the role may not see it
}

// String names the session for people, without its statement.
func (h LockHolder) String() string {
	by := fmt.Sprintf("process %d of Postgres (role %q, application %q", h.PID, h.Role, h.Application)
	if h.OpenFor > 0 {
		by += ", in a transaction since " + h.OpenFor.Round(time.Second).String()
	}
	return by + ")"
}

// FindLockHolder returns the other session with the oldest transaction that uses a table of this package in
// the current schema, or the zero LockHolder.
func FindLockHolder(ctx context.Context, db DB) (h LockHolder, err error) {
	const find = `
select l.pid, c.relname, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(clock_timestamp() - a.xact_start, '0')
from pg_locks l join pg_class c on c.oid = l.relation left join pg_stat_activity a on a.pid = l.pid
where l.granted and l.pid <> pg_backend_pid() and l.database = (select oid from pg_database where datname = current_database())
	and c.relnamespace = to_regnamespace(quote_ident(current_schema())) and starts_with(c.relname, 'idem_') and c.relkind in ('r', 'p', 'v')
order by a.xact_start, l.pid, c.relname limit 1`
	err = db.QueryRow(ctx, find).Scan(&h.PID, &h.Table, &h.Role, &h.Application, &h.OpenFor)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return h, err
}

// Blocker is a session that keeps others from using the tables of this package in the current schema.
type Blocker struct {
	LockHolder
	Waiting int64 // how many sessions wait for it, and use the tables or want to
}

// Remedy is the statement that ends the session.
func (b Blocker) Remedy() string { return fmt.Sprintf("select pg_terminate_backend(%d)", b.PID) }

const ourTables = `
	select c.oid, c.relname from pg_class c
	where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and starts_with(c.relname, 'idem_') and c.relkind in ('r', 'p')`

// FindBlockers returns the sessions that deliveries, workers or people wait for, or would: they hold a lock that
// keeps a table from being written to, or others that use the tables wait for them. Sessions that wait
// themselves, and those whose transaction is younger than a time, are left out. It reads catalogs only, so no
// lock holds it up.
func FindBlockers(ctx context.Context, db DB, older time.Duration) ([]Blocker, error) {
	const find = `
with ours as materialized (` + ourTables + `), locks as materialized (
	select pid, relation, mode, granted from pg_locks
	where database is null or database = (select oid from pg_database where datname = current_database())
), strong as (
	select l.pid, min(o.relname) as name from locks l join ours o on o.oid = l.relation
	where l.granted and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') group by l.pid
), waiting as (
	select distinct l.pid from locks l where not l.granted and exists (
		select from locks o where o.pid = l.pid and o.relation in (select oid from ours))
), blocking as (
	select b.pid, count(*) as waiting from waiting w cross join lateral unnest(pg_blocking_pids(w.pid)) b (pid) group by b.pid
)
select a.pid, coalesce(s.name, (select min(o.relname) from locks l join ours o on o.oid = l.relation where l.pid = a.pid), ''),
	coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(clock_timestamp() - a.xact_start, '0'), coalesce(b.waiting, 0)
from strong s full join blocking b using (pid) join pg_stat_activity a using (pid)
where pid <> pg_backend_pid() and not exists (select from locks l where l.pid = a.pid and not l.granted)
	and (a.xact_start is null or a.xact_start <= clock_timestamp() - $1::interval)
order by 6 desc, a.xact_start, a.pid limit 5`
	rows, _ := db.Query(ctx, find, older)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocker, err error) {
		err = row.Scan(&b.PID, &b.Table, &b.Role, &b.Application, &b.OpenFor, &b.Waiting)
		return b, err
	})
}

// Awaited is a synchronous replica that commits wait for.
type Awaited struct {
	Names    string        // as synchronous_standby_names has them; "" if no commit waits for long
	Sessions int64         // that wait
	For      time.Duration // the longest wait
}

// String says for what commits wait.
func (a Awaited) String() string {
	return fmt.Sprintf("commits wait for the synchronous replica, and it does not answer: synchronous_standby_names is %s; waiting: %d, the first for %s",
		a.Names, a.Sessions, a.For.Round(time.Second))
}

// FindAwaited finds the synchronous replica for which commits have waited for longer than two seconds: of the
// sessions of this role, which it sees without any right, or of all that it may see.
func FindAwaited(ctx context.Context, db DB) (a Awaited, err error) {
	const find = `
select count(*), coalesce(max(clock_timestamp() - query_start), '0'), case when count(*) > 0 then coalesce(nullif(current_setting('synchronous_standby_names'), ''), 'empty now') else '' end
from pg_stat_activity where wait_event = 'SyncRep' and query_start < clock_timestamp() - interval '2 seconds'`
	err = db.QueryRow(ctx, find).Scan(&a.Sessions, &a.For, &a.Names)
	return a, err
}

// LockedError is the error of tables that another session keeps locked.
type LockedError struct {
	By  []Blocker // the sessions to wait for, or to end; none if they had ended when they were looked for
	err error
}

func (e *LockedError) Error() string {
	if len(e.By) == 0 {
		return "the tables were locked by transactions that have ended meanwhile: try again"
	}
	b := e.By[0]
	return fmt.Sprintf("%s keeps %s locked: wait for its end, or end it: %s", b, b.Table, b.Remedy())
}

func (e *LockedError) Unwrap() error { return e.err }

// AwaitTables waits until the tables of the current schema whose names have a prefix, such as idem_audit, can be
// read, or written to, and returns a [LockedError] if another session keeps them locked for longer than wait. Tables
// that the role has no right to are left out, and any other error is of the statements that follow.
func AwaitTables(ctx context.Context, db interface {
	DB
	Begin(ctx context.Context) (pgx.Tx, error)
}, prefix string, wait time.Duration, write bool,
) error {
	ctx, cancel := context.WithTimeout(ctx, 4*wait) // where the server itself does not answer
	defer cancel()
	mode, right := "access share", "select"
	if write {
		mode, right = "row exclusive", "update"
	}
	const lock = `
do $$ declare names text;
begin
	select string_agg(format('%%I', relname), ', ' order by relname) into names from (%s) ours where starts_with(relname, '%s') and has_table_privilege(oid, '%s');
	execute coalesce('lock table ' || names || ' in %s mode', 'select');
end $$`
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(`set local lock_timeout = '%dms'`, wait.Milliseconds()))
		if err == nil {
			_, err = tx.Exec(ctx, fmt.Sprintf(lock, ourTables, prefix, right, mode))
		}
		return err
	})
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "55P03" {
		if ctx.Err() != nil {
			return err
		}
		return nil
	}
	by, finding := FindBlockers(ctx, db, 0)
	return errors.Join(&LockedError{by, err}, finding)
}
