// Package brokertest has the tests that every module for a broker passes. Each test
// is a promise, kept from one end to the other: deliveries by HTTP to a relay,
// a real broker, relay.To, an [idem.Inbox], and a ledger
// of effects in a real Postgres.
//
//	func TestMain(m *testing.M) { brokertest.Main(m, open) }
//
//	func TestBroker(t *testing.T) {
//		brokertest.Run(t, brokertest.Broker{Open: func(t testing.TB) brokertest.Queue { … }})
//	}
//
// A test that needs a field that the Queue lacks, Restart for example, is skipped, and says so.
package brokertest
