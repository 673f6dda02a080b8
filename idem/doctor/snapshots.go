package doctor

import (
	"context"
	"fmt"
	"time"
)

// snapshots finds snapshots that keep vacuum from removing dead rows: workers then read
// ever more of them until they find an event.
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
			Remedy:   fmt.Sprintf("wait for its end if it is a dump or a report, else: select pg_terminate_backend(%d)", t.PID),
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
			Remedy:   "ask its transaction manager, then: commit prepared or rollback prepared, with its name",
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
			Remedy:   fmt.Sprintf("start its reader, or: select pg_drop_replication_slot('%s')", s.Name),
		}
		if s.Holds {
			f.Problem += ", and dead rows"
		}
		found = append(found, f)
	}
	return found, err
}
