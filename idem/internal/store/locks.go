package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LockHolder is a session that uses a table of the current schema.
type LockHolder struct {
	PID         int32
	Table       string
	Role        string
	Application string
	OpenFor     time.Duration // its transaction; 0 where the role may not see that
}

// String names the session for people, without what it executes.
func (h LockHolder) String() string {
	by := fmt.Sprintf("process %d of Postgres (role %q, application %q", h.PID, h.Role, h.Application)
	if h.OpenFor > 0 {
		by += ", in a transaction since " + h.OpenFor.Round(time.Second).String()
	}
	return by + ")"
}

// FindLockHolder returns the session with the oldest transaction of those that use a table of
// this package in the current schema, and are not this one. It is zero where there is none.
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
