package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/batch"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Inbox receives the events of one source, stores them, answers, and has
// workers process them afterwards: each event once, those of one Key in order.
// Handlers, tables and promises are those of [Processor]; only the provider
// does not wait for the work. It is an [http.Handler]; [Inbox.Accept] stores
// without HTTP, and [Inbox.Run] works.
//
// The exported fields, and those of [Common], are settings: change them before
// the first event.
type Inbox struct {
	Common

	// Workers is how many handlers one call of [Inbox.Run] runs at once; each
	// holds a connection. Default: three quarters of the pool's connections, and
	// a quarter of an outbox.
	Workers int

	// StopTimeout is how long running handlers may go on once the context of
	// [Inbox.Run] has ended; then they are canceled and rolled back, and their
	// events wait for the next worker. Default: 10 seconds.
	StopTimeout time.Duration

	// MaxAttempts is how often an event is tried until it is parked.
	// Default: 20, which takes eight hours.
	MaxAttempts int

	// MaxCrashes is the number of processes in a row that may die while they process
	// an event, or be cut off from Postgres, until it is parked without another
	// attempt. After two the event runs alone in its process, for its first 5 seconds.
	// When its handler returns, also with an error, they are forgotten. Default: 3.
	MaxCrashes int

	// Backoff is how long to wait after the attempt of that number, counted
	// from 1, has failed. Default: [DefaultBackoff].
	Backoff func(attempt int) time.Duration

	// Poll is how often workers look for events that nobody woke them for:
	// those that are due again, and all of other processes if PollOnly is set.
	// Default: 1 second.
	Poll time.Duration

	// PollOnly does without LISTEN and NOTIFY, for poolers such as PgBouncer.
	// Default: false.
	PollOnly bool

	// Spool, when set, keeps events on the disk of this machine while Postgres cannot
	// take them: read about the disk and the order first. A [Processor] has no
	// such setting, because what it answers is done. Default: nil.
	Spool *Spool

	writer *batch.Writer[store.Incoming, result]
	held   *batch.Writer[store.Incoming, result] // of events whose row another transaction holds
	sender *notify.Sender
	wake   chan struct{} // for the workers of this process
	runs   atomic.Int32  // calls of Run that have not returned
}

// NewInbox returns an inbox for the events of source, with its settings at
// their defaults. The tables must exist: see [Migrate].
//
// It panics if the source's name cannot be used: see [Source].
func NewInbox(pool *pgxpool.Pool, source Source) *Inbox {
	i := &Inbox{
		Common:      newCommon(pool, source, 30*time.Second),
		Workers:     max(1, int(pool.Config().MaxConns)*3/4),
		StopTimeout: 10 * time.Second,
		MaxAttempts: 20,
		MaxCrashes:  3,
		Backoff:     DefaultBackoff,
		Poll:        time.Second,
		sender:      notify.NewSender(pool, channel),
		wake:        make(chan struct{}, 1),
	}
	size := func(e store.Incoming) int { return len(e.Payload) }
	i.writer, i.held = batch.NewWriter(i.storeAll, size), batch.NewWriter(i.storeAll, size)
	return i
}

// channel is what inboxes notify, of all sources.
const channel = "idem_inbox"

// ServeHTTP receives one delivery as [Processor.ServeHTTP] does, and answers
// 200 once the event is on disk, in Postgres or in the Spool.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, ok := i.Open(w, r)
	if !ok {
		return
	}
	accept := i.accept
	if d.DryRun {
		accept = i.dryDelivery
	}
	outcome, err := accept(r.Context(), d)
	i.Answer(w, r, d, outcome, err)
}

// storeTime is how long storing an event may take. A provider waits for it.
const storeTime = 8 * time.Second

// Accept stores one verified event without HTTP, as [Processor.Accept] processes
// it: a nil error means that the event need not come again. After an error it may be
// stored nevertheless, a little later: leave e.Payload as it is.
func (i *Inbox) Accept(ctx context.Context, e Event) (Outcome, error) {
	return i.accept(ctx, Delivery{Event: e})
}

// accept is Accept of a delivery.
func (i *Inbox) accept(ctx context.Context, d Delivery) (Outcome, error) {
	return i.receive(ctx, d, storeTime, func(ctx context.Context, e Event) result {
		row := store.Incoming{Event: e.row(), Trace: i.Carrier(ctx, e)}
		if i.Spool != nil {
			return i.storeOrSpool(ctx, row)
		}
		return i.storeInPostgres(ctx, row)
	})
}

// storeInPostgres hands the event to the writer, with all that arrive at the same time,
// and waits for its commit. While another transaction holds the event's row it tries
// again, apart from the others.
func (i *Inbox) storeInPostgres(ctx context.Context, e store.Incoming) result {
	r, ok := i.writer.Write(ctx, e)
	if !ok {
		return result{outcome: Retrying, err: errors.New("the event could not be stored in time: Postgres is unavailable, or the pool is too small")}
	}
	for pgtx.Held(r.err) && sleep(ctx, heldPause) {
		if again, ok := i.held.Write(ctx, e); ok {
			r = again
		}
	}
	return r
}

// heldPause is how long a delivery waits until it looks again whether its row is free.
const heldPause = 100 * time.Millisecond

// storeAll stores events, all of them within storeTime.
func (i *Inbox) storeAll(events []store.Incoming) []result {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return i.storeGroup(ctx, events)
}

// storeGroup stores events in one statement. If Postgres refuses that because of some
// of them it stores smaller groups, so that no event fails because of another.
func (i *Inbox) storeGroup(ctx context.Context, events []store.Incoming) []result {
	results, err := i.insert(ctx, events)
	if err == nil {
		return results
	}
	if len(events) > 1 && !pgtx.Unavailable(err) {
		results = nil
		for group := range slices.Chunk(events, smaller(len(events), err)) {
			results = append(results, i.storeGroup(ctx, group)...)
		}
		return results
	}
	results = make([]result, len(events))
	for n := range results {
		results[n] = result{outcome: Retrying, err: fmt.Errorf("storing the event: %w", explain(err))}
	}
	return results
}

// smaller is the size of the groups in which n events are stored, more than one, after
// err. A row that is held costs each group that has it a moment: with eighths, few and
// many such rows are found in a short time.
func smaller(n int, err error) int {
	if pgtx.Held(err) {
		return (n + 7) / 8
	}
	return 1
}
