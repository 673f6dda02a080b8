package store

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// OldestRetrying returns the time since the arrival of the first event of a source that the
// provider is to deliver again; 0 if there is none. It reads all that is not
// done, and nothing that is: a join would have Postgres look for the few that are
// retrying among all events.
func OldestRetrying(ctx context.Context, db DB, source string) (time.Duration, error) {
	const oldest = `
select now() - min(p.received_at) from idem_payloads p
where p.source = $1 and p.lane is null and (select e.state from idem_events e where e.event = p.event) = 'retrying'`
	return age(ctx, db, oldest, source)
}

// OldestFailing returns the time since the arrival of the first event of a source that workers failed
// to process, and try again; 0 if there is none. One that they have started more than ten times
// fails, too, whether that was counted or not.
func OldestFailing(ctx context.Context, db DB, source string) (time.Duration, error) {
	const oldest = `
select now() - min(p.received_at) from idem_payloads p ` + openEvent + `
where p.source = $1 and e.state = 'pending' and (e.attempts > 0 or e.starts > 10)`
	return age(ctx, db, oldest, source)
}

// OldestDue is for how long the first event of a source has been due; 0 if none
// is. One that is being processed is due, too.
func OldestDue(ctx context.Context, db DB, source string) (time.Duration, error) {
	const oldest = `select now() - min(p.due_at) from idem_payloads p where p.source = $1 and p.due_at <= now()`
	return age(ctx, db, oldest, source)
}

// OldestUnclaimed is for how long the first event of a source has been due that no
// worker has claimed; 0 if none has been for longer than wait.
func OldestUnclaimed(ctx context.Context, db DB, source string, wait time.Duration) (time.Duration, error) {
	const oldest = `
select now() - min(p.due_at) from idem_payloads p ` + openEvent + `
where p.source = $1 and p.due_at <= now() - $2::interval and e.state = 'pending' and e.claimed_by is null`
	return age(ctx, db, oldest, source, wait)
}

// Ahead returns the time by which the times of a source's events are ahead of the database's clock: 0
// unless one arrived later than wait from now, as it seems after the clock was put
// back. Those events are due when the clock is where it was.
func Ahead(ctx context.Context, db DB, source string, wait time.Duration) (time.Duration, error) {
	const ahead = `
select max(p.received_at) - now() from idem_payloads p
where p.source = $1 and p.due_at > now() + $2::interval and p.received_at > now() + $2::interval`
	return age(ctx, db, ahead, source, wait)
}

func age(ctx context.Context, db DB, query string, args ...any) (time.Duration, error) {
	var found *time.Duration
	if err := db.QueryRow(ctx, query, args...).Scan(&found); err != nil || found == nil {
		return 0, err
	}
	return *found, nil
}

// Rights are the rights of a receiver's role on a table.
type Rights struct {
	Table string
	Verbs []string // select, insert, update, delete
}

// needed are the rights of every receiver: deliveries, attempts, Prune, and looking at events that are
// parked.
var needed = []Rights{
	{"idem_events", []string{"select", "insert", "update", "delete"}},
	{"idem_payloads", []string{"select", "insert", "update", "delete"}},
	{"idem_archive", []string{"select", "update", "delete"}},
	{"idem_prunes", []string{"select", "insert", "update"}},
	{"idem_audit", []string{"select"}},
}

// NeededRights returns the rights of a receiver that archives bodies, and of one with workers.
func NeededRights(archives, works bool) []Rights {
	all := slices.Clone(needed)
	if archives {
		all = append(all, Rights{"idem_archive", []string{"insert"}})
	}
	if works {
		all = append(all, Rights{"idem_workers", []string{"select", "insert", "update", "delete"}})
	}
	return all
}

// FindWritable returns whether transactions of this connection cannot write, on a replica or
// where a default forbids it, and which rights its role lacks: "insert on idem_events". A table
// that is not there counts as granted.
func FindWritable(ctx context.Context, db DB, needs []Rights) (readOnly bool, lacks []string, err error) {
	const find = `
select current_setting('transaction_read_only') = 'on', array(
	select verb || ' on ' || name from unnest($1::text[], $2::text[]) with ordinality as need (name, verb, place)
	where not has_table_privilege(to_regclass(name), verb) order by place)`
	var tables, verbs []string
	for _, n := range needs {
		for _, v := range n.Verbs {
			tables, verbs = append(tables, n.Table), append(verbs, v)
		}
	}
	err = db.QueryRow(ctx, find, tables, verbs).Scan(&readOnly, &lacks)
	return readOnly, lacks, err
}

// LimitTime has Postgres end each further statement of a transaction after d.
func LimitTime(ctx context.Context, tx DB, d time.Duration) error {
	milliseconds := strconv.FormatInt(max(1, d.Milliseconds()), 10)
	_, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, milliseconds)
	return err
}
