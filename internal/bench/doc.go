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
//	hand3   by hand, with BEGIN and INSERT in one round trip: the fewest with a pgx.Tx
//	insert  by hand: one committed INSERT per delivery, nothing else
//	naive   by hand: insert, and workers that claim one event each; without order or retries
//
// The receiver written by hand decodes the three fields that the work needs; ours
// decodes the whole typed event, once, and reports the cost.
//
// # Choose a measurement
//
//	go run ./internal/bench -mode inline,hand -at 1       # one delivery at a time
//	go run ./internal/bench -mode inline,hand -rtt 1ms    # each round trip to Postgres takes 1 ms longer
//	go run ./internal/bench -mode inbox -for 10m          # memory must stay flat
//	go run ./internal/bench -events 100000 -json          # for programs to read
//	go run ./internal/bench -postgres "$URL"              # another Postgres; by default IDEMTEST_DATABASE_URL, or one of its own
//
// In a Postgres that is named, all tables are in schemas paghooks_bench_…, which
// are dropped at the end. Ctrl-C ends a run early, with the numbers so far.
//
// # Compare another implementation
//
// Bench can drive any receiver of Asaas's webhooks, alone or in turns with those
// above. It needs the token that the receiver expects and, to check its books, a
// query:
//
//	export ASAAS_WEBHOOK_TOKEN=…
//	go run ./internal/bench -against http://localhost:3000/webhooks/asaas -postgres "$DATABASE_URL" \
//		-ledger "select charge_id, count(*), sum(amount_in_cents) from payments group by charge_id"
//
// All events are a PAYMENT_RECEIVED. For each charge (payment.id) the query
// returns how many of them had an effect, and the sum of their amounts
// (payment.value) in cents. Other charges than those of the run do not matter.
// Effects may follow the answers by half a minute, or by -late. Without -ledger,
// only the answers are measured.
//
// # The load
//
// As many deliveries as -at says are in flight at once. Each event has an id of
// its own; -duplicates of the deliveries repeat an event that was answered 200
// before, -concurrent of the events are delivered twice at the same moment. A delivery that is
// not answered 200 within 10 seconds is delivered again, until it is. The events
// are about 10,000 charges, in turn.
//
// # The numbers
//
//	events/s             events acknowledged, each counted once, by the time that the answers took
//	end to end/s         the same by the time until their work was committed, too
//	p50, p99, p99.9      of the time to each answer, within 2 percent; max is exact
//	duplicates p50       of the deliveries of an event that was answered 200 before
//	not 200              deliveries that had another answer or none, and were repeated
//	round trips/event    to Postgres, counted on the wire
//	cpu/event            of this process, load included, and of all of Postgres's processes
//	heap, goroutines     after a collection, when its first turn began and when its last one ended
//
// All run in one process: to know the memory of one mode, run that alone. A number that
// this system does not tell is left blank: processor time elsewhere than on
// Linux, or of a Postgres that runs elsewhere.
//
// # The checks
//
// Every event that was acknowledged has its effect exactly once, and no other
// event has one: each charge has as many payments as were acknowledged, and of
// the same sum. The amounts are so different that a payment lost and another one
// doubled do not make up for each other. Otherwise, and when events were never
// acknowledged, the exit status is 1.
package main
