package store

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Rights are the rights of a receiver's role on a table.
type Rights struct {
	Table string
	Verbs []string // select, insert, update, delete
}

// needed are the rights of every receiver: for deliveries, attempts, Prune, and looking at parked events.
var needed = []Rights{
	{"idem_events", []string{"select", "insert", "update", "delete"}},
	{"idem_payloads", []string{"select", "insert", "update", "delete"}},
	{"idem_archive", []string{"select", "update", "delete"}},
	{"idem_prunes", []string{"select", "insert", "update"}},
	{"idem_pauses", []string{"select", "delete"}},
	{"idem_audit", []string{"select"}},
	{"idem_workers", []string{"select", "insert", "update", "delete"}},
}

// NeededRights returns the rights of a receiver; archives adds the right to archive bodies.
func NeededRights(archives bool) []Rights {
	all := slices.Clone(needed)
	if archives {
		all = append(all, Rights{"idem_archive", []string{"insert"}})
	}
	return all
}

// FindWritable reports whether transactions of this connection are read-only, on a replica or by default, and
// the rights that its role lacks: "insert on idem_events", or rows that row level security hides. All rights on a
// missing table count as granted.
func FindWritable(ctx context.Context, db DB, needs []Rights) (readOnly bool, lacks []string, err error) {
	const find = `
select current_setting('transaction_read_only') = 'on', array(
	select verb || ' on ' || name from unnest($1::text[], $2::text[]) with ordinality as need (name, verb, place)
	where not has_table_privilege(to_regclass(name), verb) order by place)
	|| array(select distinct 'rows of ' || name || ', which row level security hides' from unnest($1::text[]) name where row_security_active(to_regclass(name)) order by 1)`
	var tables, verbs []string
	for _, n := range needs {
		for _, v := range n.Verbs {
			tables, verbs = append(tables, n.Table), append(verbs, v)
		}
	}
	err = db.QueryRow(ctx, find, tables, verbs).Scan(&readOnly, &lacks)
	return readOnly, lacks, err
}

// LimitTime has Postgres end each further statement of a transaction after d. It compiles none of them: that takes
// seconds, and those that look at events that are not done take less.
func LimitTime(ctx context.Context, tx DB, d time.Duration) error {
	milliseconds := strconv.FormatInt(max(1, d.Milliseconds()), 10)
	_, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`, milliseconds)
	return err
}
