package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/batch"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Inbox receives the events of one source, stores them, answers, and has workers process them afterwards:
// each event once, those of one Key in order. Handlers, tables and promises are the same as for a
// [Processor]; only the provider does not wait for the work. An Inbox is an [http.Handler]; [Inbox.Accept]
// stores without HTTP, and [Inbox.Run] runs the workers.
//
// The exported fields, and those of [Common], are settings: change them before
// the first event.
type Inbox struct {
	Common

	// Workers is the number of handlers that one call of [Inbox.Run] runs at once; each handler holds a
	// connection. Default: three quarters of the pool's connections; a quarter for an outbox. If the inboxes
	// that [Serve] runs would hold all connections of a pool by default, they have fewer Workers, so that one
	// connection is left for deliveries.
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

	writer *batch.Writer[store.Incoming, result]
	locked *batch.Writer[store.Incoming, result] // of events with a row that another transaction has locked
	sender *notify.Sender
	wake   chan struct{} // for the workers of this process

	defaultWorkers int // Workers, unless the application has set it
}

// channel is the channel that the inboxes of all sources notify.
const channel = "idem_inbox"

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
		Backoff:     defaultBackoff,
		Poll:        time.Second,
		sender:      notify.NewSender(pool, channel),
		wake:        make(chan struct{}, 1),
	}
	i.defaultWorkers = i.Workers
	size := func(e store.Incoming) int { return len(e.Payload) }
	i.writer, i.locked = batch.NewWriter(i.storeAll, size), batch.NewWriter(i.storeAll, size)
	return i
}

// ServeHTTP receives one delivery as [Processor.ServeHTTP] does, and answers
// 200 once the event is on disk.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.serve(w, r, i.accept)
}

// Accept stores one verified event without HTTP. A nil error means that the event is stored, and need not be
// delivered again. After an error the event may be stored nevertheless, a little later: do not change
// e.Payload.
func (i *Inbox) Accept(ctx context.Context, e Event) (Outcome, error) {
	return i.accept(ctx, delivery{event: e})
}

// accept is Accept for a delivery.
func (i *Inbox) accept(ctx context.Context, d delivery) (Outcome, error) {
	return i.receive(ctx, d, storeTime, func(ctx context.Context, e Event) result {
		return i.store(ctx, store.Incoming{Event: e.row(), Trace: i.carrier(ctx, e)})
	})
}

// storeTime is the time that storing an event may take: a provider waits.
const storeTime = 8 * time.Second

// store has the writer store the event, in one group with all events that arrive at the same time, and waits
// for the commit. While another transaction has locked the event's row, store tries again, in groups of such
// events.
func (i *Inbox) store(ctx context.Context, e store.Incoming) result {
	r, ok := i.writer.Write(ctx, e)
	if !ok {
		return result{outcome: Retrying, err: errors.New("the event could not be stored in time: Postgres is unavailable, or the pool is too small")}
	}
	for pgtx.RowLocked(r.err) && sleep(ctx, lockedPause) {
		if again, ok := i.locked.Write(ctx, e); ok {
			r = again
		}
	}
	return r
}

// lockedPause is the time between two tries to store an event with a locked row.
const lockedPause = 100 * time.Millisecond

// storeAll stores events, all of them within storeTime.
func (i *Inbox) storeAll(events []store.Incoming) []result {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return i.storeGroup(ctx, events)
}

// storeGroup stores events in one statement. If Postgres refuses the statement because of some events,
// storeGroup stores smaller groups, so that no event fails because of another.
func (i *Inbox) storeGroup(ctx context.Context, events []store.Incoming) []result {
	results, err := i.insert(ctx, events)
	if err == nil {
		return results
	}
	canceled := pgtx.Canceled(err) // by the statement_timeout of a role: fewer events take less time
	if len(events) > 1 && (!pgtx.Unavailable(err) || canceled) {
		results = nil
		size := 1
		if canceled || pgtx.RowLocked(err) { // each group with a locked row takes a moment to fail: eighths find few and many such rows in a short time
			size = (len(events) + 7) / 8
		}
		for group := range slices.Chunk(events, size) {
			results = append(results, i.storeGroup(ctx, group)...)
		}
		return results
	}
	results = make([]result, len(events))
	for n := range results {
		results[n] = result{outcome: Retrying, err: fmt.Errorf("storing the event: %w", store.Explain(err))}
	}
	return results
}

// insert stores events and returns the result of each. An event may be stored already, or be twice among
// events.
func (i *Inbox) insert(ctx context.Context, events []store.Incoming) ([]result, error) {
	inserted, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) ([]store.Inserted, error) {
		return store.InsertPending(ctx, db, events)
	})
	if err != nil {
		return nil, err
	}
	results, found := make([]result, len(events)), make([]store.Found, len(events))
	looks, isNew := &pgx.Batch{}, false
	for n, one := range inserted {
		found[n].State = one.State
		switch {
		case one.New:
			results[n].outcome, isNew = Pending, true
		case one.State == "":
			store.Look(looks, events[n].Event, &found[n])
		}
	}
	if isNew {
		i.wakeAll()
	}
	if looks.Len() > 0 {
		if err := exec(ctx, i.pool, func(ctx context.Context, db store.DB) error { return store.ReadCommitted(ctx, db, looks) }); err != nil {
			return nil, err
		}
	}
	for n, e := range events {
		if results[n].outcome == "" {
			if results[n], err = i.storeAgain(ctx, e, found[n]); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// storeAgain returns the result of a delivery of a stored event. A repeatable event becomes pending: an
// application that processed inline has left it, or the provider sends it again by hand.
func (i *Inbox) storeAgain(ctx context.Context, e store.Incoming, found store.Found) (result, error) {
	i.logFirstConflict(ctx, Event(e.Event), found)
	switch {
	case found.State == "":
		return result{outcome: Retrying, err: errForgotten}, nil
	case isRepeatable(found.State):
		revived, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (bool, error) { return store.Revive(ctx, db, e) })
		if err != nil || !revived {
			return result{outcome: Retrying, err: errors.New("a delivery of the same event is being processed elsewhere")}, err
		}
		i.wakeAll()
		return result{outcome: Pending, conflict: found.Conflict}, nil
	}
	return result{outcome: Duplicate, conflict: found.Conflict}, nil
}

// wakeAll has the workers, here and in other processes, look for events now: call it once a transaction that
// stores events, as an outbox does, is committed. Without it the workers look every Poll.
func (i *Inbox) wakeAll() {
	i.wakeOwn()
	if !i.PollOnly {
		i.sender.Send()
	}
}

// wakeOwn wakes the workers of this process.
func (i *Inbox) wakeOwn() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}
