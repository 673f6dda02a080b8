// Package pgproxy stands between pgx and Postgres and breaks the connection, or
// calls a test, at a chosen message.
//
// It reads the wire protocol in both directions, numbers the messages of the
// client, and knows which answer belongs to which message, in the simple and in
// the extended protocol and in pipelines:
//
//	proxy := new(pgproxy.Proxy)
//	proxy.Through(config) // of a pgxpool
//	…
//	proxy.Arm(pgproxy.Fault{Step: 7, Point: pgproxy.BeforeAnswer})
//	… // one attempt
//	steps, fired := proxy.Disarm()
//
// Nothing depends on time. Before a fault the proxy waits until Postgres has
// answered every message that it was sent; where the protocol has no answer yet,
// a Flush of the proxy's own asks for it. After a cut it waits until Postgres
// has ended the session: the transaction is gone by then, and its locks.
//
// [Proxy.Forget] is the fault of a network that forgets every connection.
//
// It stands above TLS, in the process under test, and needs no port.
//
// A [Pooler] is another thing between the two: transaction pooling, as PgBouncer
// does it.
//
// See https://www.postgresql.org/docs/current/protocol-flow.html.
package pgproxy
