// Bench measures the cost of receiving webhooks, and checks at the end that no
// payment was lost or booked twice. It starts a Postgres that commits to the
// disk, the implementations to compare, and a load that behaves like Asaas:
//
//	go run ./internal/bench
//
// All implementations receive the same kind of bodies, have the same work (one
// UPDATE) and take short turns in one run, so that their ratios hold although a
// machine's speed does not:
//
//	inline  idem.Processor: works, then answers
//	inbox   idem.Inbox: stores, answers, and works meanwhile
//	ingest  idem.Inbox whose workers do not run before the end: what storing takes
//	hand    the same work by hand on pgx, in the four round trips that pgx.Tx takes
//	insert  by hand: one committed INSERT for each delivery, nothing else
//	naive   by hand: insert, and workers that claim one event each; without order or retries
//	river   a job of River for each delivery, unique by the event's id; its worker does the
//	        work and completes the job in one transaction; without order
//
// The receivers written by hand decode the three fields that the work needs; ours
// decodes the whole typed event. River runs four jobs for each connection at once, and
// fetches every millisecond: by its defaults, every 100, it would be slower.
//
//	go run ./internal/bench -mode inline,hand -at 1       # one delivery at a time
//	go run ./internal/bench -mode inline,hand -rtt 1ms    # each round trip to Postgres takes 1 ms longer
//	go run ./internal/bench -postgres "$URL"              # another Postgres; by default IDEMTEST_DATABASE_URL, or one of its own
//
// In a Postgres that is named, all tables are in schemas paghooks_bench_…, which
// are dropped at the end. Ctrl-C ends a run early, with the numbers so far.
//
// # The load
//
// As many deliveries as -at says are in flight at once. Each event has an id of
// its own; 5 % of the deliveries repeat an event that was answered 200 before, 1 % of the
// events are delivered twice at the same moment. A delivery that is not answered 200
// within 10 seconds is delivered again, until it is. The events are about 10,000
// charges, in turn.
//
// # The numbers
//
//	events/s             events acknowledged, each counted once, by the time that the answers took
//	end to end/s         the same by the time until their work was committed, too
//	p50, p99             of the time to each answer
//	round trips/event    to Postgres, counted on the wire
//	cpu/event            of this process, load included, and of all of Postgres's processes; blank where
//	                     this system does not tell
//
// # The ledger
//
// Every event that was acknowledged has its effect exactly once, and no other
// event has one: each charge has as many payments as were acknowledged, and of
// the same sum. The amounts are so different that a payment lost and another one
// doubled do not make up for each other. Otherwise the exit status is 1.
package main
