package idem

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/outage"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Common holds the settings that [Processor] and [Inbox] share, and the
// operations on stored events. Use it through them.
//
// The exported fields are settings: change them before the first event.
type Common struct {
	Endpoint

	// Timeout is the time that an attempt may take: getting a connection, the handler, the commit. The
	// handler's context ends then. Default: 8 seconds for a Processor, which answers within another 1.5
	// seconds (Asaas waits for 10); 30 seconds for an Inbox, which has answered before the attempt.
	Timeout time.Duration

	// KeepPayloads archives the bodies of done events in idem_archive. Bodies hold personal data. Default:
	// false, a body is deleted once its event is done.
	KeepPayloads bool

	// Retention holds the ages from which [Common.Prune] forgets what is stored.
	Retention Retention

	// PassParked lets later events of a Key go on when an event is parked: for handlers that are right in any
	// order. Switched on later, PassParked also lets the events go on that wait already: within a minute
	// where [Processor.Run] or [Inbox.Run] runs. Default: false, later events wait until the parked one is
	// replayed or discarded.
	PassParked bool

	pool    *pgxpool.Pool
	spoiled sync.Once // the log says that handlers spoil connections
}

func newCommon(pool *pgxpool.Pool, source Source, timeout time.Duration) Common {
	return Common{
		Endpoint:  newEndpoint(source),
		Timeout:   timeout,
		Retention: Retention{Events: 45 * day, Audit: 2 * 365 * day},
		pool:      pool,
	}
}

// Retention holds the ages from which [Common.Prune] forgets events, bodies and the trail of people's actions.
type Retention struct {
	// Events is the age of a done, unhandled or discarded event. A provider can send an event again after 31
	// days (Zelta Pay, replayed by hand): a shorter retention would process the event twice, and is refused.
	// Default: 45 days; 1 day for an outbox.
	Events time.Duration

	// AllowProcessingTwice accepts Events of less than 31 days: an event that is delivered again after that is
	// processed again. Default: false.
	AllowProcessingTwice bool

	// Parked is the age of a parked event. Default: 0 (never), because each may be an unprocessed payment.
	Parked time.Duration

	// Payloads is the age of a body that KeepPayloads has archived. Default: 0, archived bodies are deleted
	// together with their events.
	Payloads time.Duration

	// Audit is the age of an entry of the audit trail, which names the person that acted; 0 is never. If the
	// database's role may not delete from idem_audit, the entries stay. Default: 2 years.
	Audit time.Duration
}

const day = 24 * time.Hour

// minRetention is longer than the time in which a provider may deliver an event again.
const minRetention = 31 * day

func (c *Common) common() *Common { return c }

// serve opens a delivery, calls accept or makes a dry run, and answers. The receiver remembers the ids of events:
// a delivery with a signed id may be as old as Retention less a day, and a second delivery of the event is a
// duplicate.
func (c *Common) serve(w http.ResponseWriter, r *http.Request, accept func(context.Context, delivery) (Outcome, error)) {
	r = r.WithContext(handling.WithRemembered(r.Context(), c.Retention.Events-day))
	c.Endpoint.serve(w, r, accept, c.dryDelivery)
}

// outage returns what is known of the broker of an outbox; nil without one.
func (ep *Endpoint) outage() *outage.Outage {
	if d, ok := ep.source.(dependent); ok {
		return d.Outage()
	}
	return nil
}

// dependent is a source of which all handlers depend on one thing, a broker.
type dependent interface{ Outage() *outage.Outage }

// query calls f, which executes a statement of package store, and returns its answer. A delivery or a worker
// waits for the answer: query gives up after 5 seconds. See [pgtx.Ask].
func query[T any](ctx context.Context, pool *pgxpool.Pool, f func(context.Context, store.DB) (T, error)) (answer T, err error) {
	err = exec(ctx, pool, func(ctx context.Context, db store.DB) (err error) {
		answer, err = f(ctx, db)
		return err
	})
	return answer, err
}

// exec calls f, which executes a statement without an answer, as query does.
func exec(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, store.DB) error) error {
	return pgtx.Ask(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error { return f(ctx, conn) })
}

// change runs a transaction that changes many rows, within statementTime. It runs the transaction again
// after a deadlock.
func (c *Common) change(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	for runs := 1; ; runs++ {
		limited, cancel := context.WithTimeout(ctx, statementTime)
		err := pgtx.Change(limited, c.pool, do)
		cancel()
		if !pgtx.Retryable(err) || runs == maxRuns || !pause(ctx, runs) {
			return err
		}
	}
}

// statementTime is the time that a statement of an operation on stored events may take. Some statements read
// or change all events that are not done.
const statementTime = 5 * time.Minute

// maxRuns is the largest number of runs of a transaction, the first one included, if Postgres asks to run it
// again.
const maxRuns = 4

// pause waits a little longer after each try, with jitter, so that transactions that met once do not meet
// again. It reports whether ctx has time for another try.
func pause(ctx context.Context, tries int) bool {
	d := min(10*time.Millisecond<<min(tries, 6), 500*time.Millisecond)
	return sleep(ctx, d/2+rand.N(d))
}

// sleep waits for d. It reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
