// Package postgres finds or starts a Postgres, for package idemtest (its comment
// says where it looks) and for the tests and benchmarks of this repository.
//
// A [Cluster] is a Postgres of the test's own, which can go down under load:
//
//	var cluster postgres.Cluster
//	err := cluster.Start(ctx)
//	…
//	err = cluster.Crash(ctx) // every connection breaks
//	err = cluster.Start(ctx) // on the same data
//
// A replica of it takes over where it is promoted, as after the loss of a machine:
//
//	replica, err := cluster.Replica(ctx)
//	…
//	err = cluster.Crash(ctx)
//	err = replica.Promote(ctx) // without what it had not received yet
//
// A cluster starts on a copy of data that initdb made once, which is in the user's cache.
// Programs that share a server, started by [Share], each have a database of their own.
//
// With Durable set, commits cost as much as in production: for benchmarks.
//
// No process, folder or container stays behind, however the program ends: Postgres
// ends when it loses its connection to it.
package postgres
