// Package doctor says what is wrong with the events of an application and with the database that
// package idem uses, and what to do about it:
//
//	findings, err := doctor.Check(ctx, pool, inbox)
//	for _, f := range findings {
//		fmt.Println(f.Severity, f.Problem, f.Command)
//	}
//
// It changes nothing. The command idem has it as idem doctor.
//
// # The checks
//
// A cause comes before what follows from it, and what keeps everything from working comes first. Then come the events,
// in the words of package health, the page and idem stats:
//
//	workers         events that are due, and no worker takes
//	clock           events that arrived in the future: the database's clock was put back
//	failing         events that fail and are tried again: their types, the most frequent error, what waits behind them. It
//	                is an error where one has failed for ten minutes, and a warning until then
//	parked          events to which nothing happens by itself, and what waits behind them
//	standing        events that wait for a parked one of which somebody takes care
//	paused          events that a person has paused
//
// Beside these stands what the providers and the program say, by [CheckWebhooks] and [CheckHealth]: deliveries that are
// refused and a webhook that is disabled show in no table. Then the rest:
//
//	stuck, conflicts, scopes
//	                events that wait for one that is not there, in conflict, with and without a scope
//	connection      a statement_timeout that is too short, a pooler, how soon Postgres notices a dead client, clocks that differ, too few connections
//	server          version, a replica that takes no writes, fsync, lag of replicas, and
//	                whether the pool notices a canceled wait for one: of the pool that it is given, which is not the
//	                application's where the command idem runs it
//	locks           sessions that keep the tables locked, or that others wait for, and the statement that ends them
//	tables          several sets along the search_path, migrations, columns and indexes that are gone or changed, the view,
//	                the rows that keep plans good, the rights of the role, roles that may read bodies or write and need not,
//	                row level security, triggers that refuse events, autovacuum; indexes whose order of text has changed
//	old snapshots   transactions, prepared transactions and replication slots that keep dead rows
//	charges         tables of asaas/charges that are gone
//	settings        a Retention that is shorter than the time in which a provider may deliver again
//	prune           events that are three days older than Retention, where none was forgotten for three days
//
// # Rights
//
// The application's role is enough. A role that may only read is not asked to write. Facts
// that the role may not see, such as the transactions of other roles, become an [Info]
// finding: grant it pg_monitor to see them.
package doctor
