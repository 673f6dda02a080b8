// Package promises has the proofs of package idem, and nothing else: tests that use it as a program does, on a
// real Postgres. Each is named after its promise; docs/promises.md says what the answer to each case is, and
// which test shows it. Run one, and look at a failure until it is understood:
//
//	go test ./idem/promises -run TestConnectionCutAtCommitNeitherLosesNorDoubles
//	go test ./idem/promises -run 'Killed|Crash' -count=20
//
// Tests in files with the tag long take minutes:
//
//	go test -tags=long ./idem/promises -run TestInboxIsItsModelInManyHistories
//
// With IDEM_TEST_PARTITIONED=1 all of them run on the tables of docs/partitioned.sql.
//
// # What is proved, and where
//
//	deliver duplicate switch          // an event is done once, however often it comes, and in which mode
//	matrix matrix_paths matrix_long   // a connection is cut, or a process killed, at each message of each path
//	verdict session faults connection // a COMMIT without an answer, ended sessions, a network that forgets
//	crash inbox_crash inbox_alive stopped inbox_moved // processes that are killed, stopped or cut off
//	refused failover storm            // Postgres refuses, crashes, is promoted; many at once
//	inbox_store inbox_work inbox_order // stored on disk; retried; in the order of their entity
//	first                             // the first try of an inbox that works first
//	scripts script                    // histories of a few lines each, in words, on a model and on the database
//	model model_rules                 // random histories, which the same model foretells
//	hostile panics mistakes           // strangers, and handlers that make mistakes
//	handler_tx hooks isolation timeouts // a handler's transaction, what follows it, every isolation level, every wait
//	replay requeue pause list prune private scopes // operations on stored events, and their trail
//	serve                             // how a program starts and stops, and what it logs
//	migrate schema privileges         // the tables, by whom, and in which order rows are read
//	cost bench                        // what an event costs
//	dryrun                            // runs that are rolled back
//
// What stands on the engine is proved in its own package, on the same shop: idem/health, its canary,
// idem/broker/outbox and idem/oncall/operator.
//
// # How a test is made
//
// A test opens an app: a shop of internal/testkit, which is a schema of its own, a provider with the one event type
// "paid", an inbox that works first behind a server and, with newInboxApp, one that answers first. pay is a handler
// with one effect; WantEffects counts the effects in the database. Nothing sleeps: a test waits for a lock that
// Postgres reports, a channel, or a line of pg_stat_activity. Faults are injected by a proxy that reads the messages
// of Postgres's protocol, package pgproxy, and a fault that never fires fails its test. Processes that die are this
// test binary, started again.
package promises
