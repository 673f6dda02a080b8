package asaastest

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
)

// Fake is an Asaas of the test's own: its API for webhooks, and the queues that
// deliver events by its rules. Its clock moves only when [Fake.Advance] moves
// it, so that days pass in milliseconds and every run is the same.
//
// Make one with [New] or [NewServer], set the fields before the first use, and
// Close it at the end. The methods may be called from several goroutines, and
// from a receiver while it handles an event; the clock has one mover at a time.
type Fake struct {
	// URL is the address of the API, "http://127.0.0.1:40321"; its paths begin
	// with /v3. It is empty unless the fake was made by NewServer.
	URL string

	// APIKey is the key that the API takes; "$aact_hmlg_fake" by default. Its
	// beginning makes the fake a sandbox, $aact_hmlg_, or production,
	// $aact_prod_: a key of the other one is refused as invalid_environment.
	APIKey string

	// Limit bounds the API's requests; 25,000 in 12 hours by default, as Asaas
	// publishes. It counts in the fake's time.
	Limit RateLimit

	// RemoveBackoffLimit bounds removeBackoff, besides; 5 in a minute by default.
	// Asaas says that it is stricter, and no number.
	RemoveBackoffLimit RateLimit

	// Schedule is the waits between attempts; [PortugueseSchedule] by default.
	Schedule RetrySchedule

	// Accept2xx takes any 2xx for success, as some of Asaas's pages say; only 200
	// is by default.
	Accept2xx bool

	// Counting says which failures in a row pause a NON_SEQUENTIALLY webhook;
	// [PerEvent] by default. Asaas does not say.
	Counting Counting

	// Parallelism is the number of events of a NON_SEQUENTIALLY webhook that are delivered at
	// once; 10 by default. Asaas says no number.
	Parallelism int

	// Timeout is the time that a receiver has, in real time (in a synctest
	// bubble: in the bubble's); 10 seconds by default, as Asaas waits. In the
	// fake's time every attempt takes none. For a receiver that never answers,
	// make it a millisecond.
	Timeout time.Duration

	// Observe, if not nil, is called with each entry of the timeline, just after
	// it happened; in the order of the timeline, as long as one goroutine at a
	// time uses the fake. It may call the fake, but not move its clock.
	Observe func(Entry)

	// ErrorLog, if not nil, gets the complaints of net/http on the fake's
	// side, such as a Handler that panics, with its stack. By default the fake is
	// quiet: the timeline has the result of the attempt.
	ErrorLog *log.Logger

	mover  fixture.Mover // of the clock
	ctx    context.Context
	close  func()
	routes *http.ServeMux
	memory *memory // the API without a socket
	direct *http.Transport

	faults    fixture.Faults[Fault]
	apiFaults fixture.Faults[APIFault]

	timeline  fixture.Timeline[Entry] // its lock is that of all below
	now       time.Time
	webhooks  []*webhook
	receivers []*receiver // also those of webhooks that were deleted
	queued    int         // events, ever
	events    map[string]event
	limits    limits
	account   account
}

// Close ends deliveries and API requests in flight, and waits for Handlers that
// still run, at most for Timeout. Nothing of the fake is left then.
func (f *Fake) Close() {
	f.close()
	f.timeline.Lock()
	receivers := f.receivers
	f.timeline.Unlock()
	for _, r := range receivers {
		r.close(f.Timeout)
	}
	f.memory.close(f.Timeout)
}

// Transport takes requests to this fake's API without a socket, whichever host
// they name: for an [asaas.Client] with Asaas's own base URL, and in a synctest
// bubble.
func (f *Fake) Transport() http.RoundTripper { return f.direct }

// Now is the fake's time.
func (f *Fake) Now() time.Time {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	return f.now
}

// complaints go to ErrorLog, which may be set later.
func (f *Fake) complaints() *log.Logger { return log.New(complaint{f}, "", 0) }

type complaint struct{ fake *Fake }

// Write implements [io.Writer].
func (c complaint) Write(line []byte) (int, error) {
	if logger := c.fake.ErrorLog; logger != nil {
		logger.Print(string(line))
	}
	return len(line), nil
}

// change changes the fake's state, and then calls Observe with the new entries.
func (f *Fake) change(do func()) { f.timeline.Change(do, f.Observe) }

// Timeline is all that happened so far, in its order.
func (f *Fake) Timeline() []Entry { return f.timeline.Entries() }

// record completes an entry; p is nil where it is about the queue.
func (f *Fake) record(w *webhook, p *pending, e Entry) {
	e.At, e.WebhookID = f.now, w.ID
	if p != nil {
		e.EventID, e.EventType, e.Attempt = p.event.id, p.event.kind, p.attempts
	}
	f.timeline.Record(e)
}
