package idem

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/batch"
	"github.com/paghooks/paghooks/idem/internal/count"
	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/outage"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Inbox receives the events of one source, stores them, answers, and has workers process them afterwards:
// each event once, in one transaction with the record that it is done, and the events of one Key in order. An Inbox
// is an [http.Handler]; [Inbox.Accept] does the same without HTTP, and [Inbox.Run] runs the workers.
//
// A parked event holds its entity: later events of its Key, by the provider's time and then by arrival, wait until
// it is replayed, requeued or discarded. Package health is red then. To give an event up and let its entity go on, a
// handler returns nil, and writes a row of its own.
//
// The exported fields, and those of [Endpoint], are settings: change them before the first event. Any number of
// inboxes, in any number of processes, may share a database.
type Inbox struct {
	Endpoint

	// Timeout is the time that an attempt of a worker or of [Inbox.Replay] may take: getting a connection, the
	// handler, the commit. The handler's context ends then. Default: 30 seconds.
	Timeout time.Duration

	// WorkFirst has each delivery make a first try before it is answered: the handler and the record that the event is
	// done are committed, and the answer is 200. It costs a third of what storing an event and processing it costs, and
	// half of the time. The first try is not an attempt, and is not counted. An event is stored and answered 200, for
	// the workers to process, if its try fails or takes longer than AnswerWithin, if an earlier event of its Key is not
	// done or one is being processed, if it is paused, and if no connection is free for it within a second. See "Work
	// first" in the package's documentation for what WorkFirst does not promise. Default: false.
	WorkFirst bool

	// AnswerWithin is the time that a first try may take, 5 seconds at most. Then it is rolled back, the event is
	// stored, and workers run the handler again. Default: 4 seconds.
	AnswerWithin time.Duration

	// Workers is the number of handlers that one call of [Inbox.Run] runs at once; each handler holds a
	// connection. Default: three quarters of the pool's connections; half of them with WorkFirst, whose first tries
	// use the others except one; a quarter for an outbox. If the inboxes that [Serve] runs would hold all connections
	// of a pool by default, they have fewer Workers, so that one connection is left for deliveries.
	Workers int

	// StopTimeout is the time for which running handlers may go on once the context of [Inbox.Run] has ended;
	// then the handlers are canceled and rolled back, and their events wait for the next worker. Default: 10
	// seconds.
	StopTimeout time.Duration

	// MaxAttempts is the number of failed attempts after which an event is parked. Default: 20, which takes
	// eight hours.
	MaxAttempts int

	// Backoff returns the time to wait after an attempt has failed. attempt is counted from 1. Default: a second
	// after the first attempt, twice as long after each further attempt, and an hour at most, give or take a
	// quarter: events that failed together are not tried again together.
	Backoff func(attempt int) time.Duration

	// Poll is the interval at which workers look for events without being woken: events that are due again,
	// and all events of other processes if PollOnly is set. Default: 1 second.
	Poll time.Duration

	// PollOnly does without LISTEN and NOTIFY, for poolers such as PgBouncer.
	// Default: false.
	PollOnly bool

	// KeepPayloads archives the bodies of done events in idem_archive. Bodies hold personal data. Default:
	// false, a body is deleted once its event is done.
	KeepPayloads bool

	// Retention holds the ages from which [Inbox.Prune] forgets what is stored.
	Retention Retention

	// PassParked lets later events of a Key go on when an event is parked: for handlers that are right in any
	// order. Switched on later, PassParked also lets the events go on that wait already, within a minute. Default:
	// false, later events wait until the parked one is replayed, requeued or discarded.
	PassParked bool

	pool    *pgxpool.Pool
	writer  *batch.Writer[store.Incoming, result]
	locked  *batch.Writer[store.Incoming, result] // of events with a row that another transaction has locked
	sender  *notify.Sender
	wake    chan struct{} // for the workers of this process
	spoiled sync.Once     // the log says that handlers spoil connections

	defaultWorkers int          // Workers, unless the application has set it
	working        atomic.Int32 // workers of this process, busy or idle

	flights sync.Map      // the *flight of each event and body
	tries   atomic.Int32  // first tries in flight
	turn    chan struct{} // for those that wait for the end of another
	firsts  sync.Map      // when each handler of a first try began that has not returned, by row key
	slow    count.Share   // of the first tries, those that AnswerWithin has ended
	others  lastWorkers
}

// channel is the channel that the inboxes of all sources notify.
const channel = "idem_inbox"

// NewInbox returns an inbox for the events of source, with its settings at
// their defaults. The tables must exist: see [Migrate].
//
// It panics if the source's name cannot be used: see [Source].
func NewInbox(pool *pgxpool.Pool, source Source) *Inbox {
	i := &Inbox{
		Endpoint:     newEndpoint(source),
		Timeout:      30 * time.Second,
		AnswerWithin: 4 * time.Second,
		Workers:      max(1, int(pool.Config().MaxConns)*3/4),
		StopTimeout:  10 * time.Second,
		MaxAttempts:  20,
		Backoff:      defaultBackoff,
		Poll:         time.Second,
		Retention:    Retention{Events: 45 * day, Audit: 2 * 365 * day},
		pool:         pool,
		sender:       notify.NewSender(pool, channel),
		wake:         make(chan struct{}, 1),
		turn:         make(chan struct{}, 1),
		others:       lastWorkers{turn: make(chan struct{}, 1)},
	}
	i.defaultWorkers = i.Workers
	size := func(e store.Incoming) int { return len(e.Payload) }
	i.writer, i.locked = batch.NewWriter(i.storeAll, size), batch.NewWriter(i.storeAll, size)
	return i
}

// ServeHTTP receives one delivery: it has the source verify and read the delivery, runs [Inbox.Accept], and
// answers. 200 means that the event is on disk, and the provider stops sending it.
//
//	200  the event is stored, now or before; done, with WorkFirst; or ignored
//	401  not genuine; the body names the reason
//	405  not a POST
//	413  the body is larger than MaxBody
//	503  not stored: it must be delivered again, as its body was empty or not whole, for example; or a dry run, see
//	     [DryRunHeader]
//
// The inbox remembers the ids of events: a delivery with a signed id may be as old as Retention less a day, and a
// second delivery of the event is a duplicate.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(handling.WithRemembered(r.Context(), i.Retention.Events-day))
	i.serve(w, r, i.accept, i.dryDelivery)
}

// Accept accepts one verified event without HTTP, for deliveries that arrive through a queue or a router of the
// application's own. Name the event with the provider's Identify:
//
//	outcome, err := inbox.Accept(ctx, asaas.Identify(body))
//
// A nil error means that the event is stored, or done with WorkFirst, and need not be delivered again. After an
// error it must be delivered again; it may be stored nevertheless, a little later: do not change e.Payload.
//
// Canceling ctx does not stop a first try; AnswerWithin does.
func (i *Inbox) Accept(ctx context.Context, e Event) (Outcome, error) {
	return i.accept(ctx, delivery{event: e})
}

// accept is Accept for a delivery.
func (i *Inbox) accept(ctx context.Context, d delivery) (Outcome, error) {
	return i.receive(ctx, d, answerTime, func(ctx context.Context, e Event) result {
		if i.WorkFirst {
			return i.workFirst(ctx, e)
		}
		return i.store(ctx, e, time.Time{})
	})
}

// answerTime is the time from the first byte of a delivery within which it is answered: Asaas waits for 10 seconds.
const answerTime = 9 * time.Second

// outage returns what is known of the broker of an outbox; nil without one.
func (ep *Endpoint) outage() *outage.Outage {
	if d, ok := ep.source.(dependent); ok {
		return d.Outage()
	}
	return nil
}

// dependent is a source of which all handlers depend on one thing, a broker.
type dependent interface{ Outage() *outage.Outage }
