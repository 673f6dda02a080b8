// Package doctor examines the database that package idem uses, and returns what is
// wrong with it and what to do:
//
//	findings, err := doctor.Check(ctx, pool, processor)
//	for _, f := range findings {
//		fmt.Println(f.Severity, f.Problem, f.Remedy)
//	}
//
// It changes nothing. The command idem has it as idem doctor.
//
// # What it looks at
//
//	connection      a pooler, how soon Postgres notices a dead client, clocks that differ, too few connections
//	server          version, a replica that takes no writes, fsync, synchronous_commit, wal_level, lag of replicas, and
//	                whether the pool notices a canceled wait for one: of the pool that it is given, which is not the
//	                application's where the command idem runs it
//	tables          several sets along the search_path, migrations, indexes, the rights of the role, autovacuum
//	features        what the modes need of Postgres and its relatives may lack, tried and rolled back
//	old snapshots   transactions, prepared transactions and replication slots that keep dead rows
//	events          parked, blocked, in conflict, with and without a scope, waiting for an event that is not there, claimed by no worker
//	settings        a Retention that is shorter than the time in which a provider may deliver again
//
// # Rights
//
// The application's role is enough. What it may not see, such as the transactions
// of other roles, becomes an [Info] finding: grant it pg_monitor to see that, too.
package doctor
