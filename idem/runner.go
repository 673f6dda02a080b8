package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/claims"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// errStopped is the cause of the handlers' cancellation when their workers are stopped.
var errStopped = errors.New("the workers were stopped: the next ones go on with it")

// runner is one call of Run, Drain or Replay. It claims events, and ends what it has claimed.
type runner struct {
	inbox    *Inbox
	size     int                     // the number of workers; 0 for a replay
	attempts context.Context         // of the handlers
	cancel   context.CancelCauseFunc // cancels the handlers
	idle     chan struct{}           // has an element for each idle worker
	workers  sync.WaitGroup
	timedOut atomic.Int64 // handlers that did not return when they were stopped
	position claims.Position
	waiting  int       // events that the last searches have met, if all of them wait for others
	others   bool      // in an outage, the next search is for an event of a type without failures
	othersAt time.Time // when the next such search is made
	heldAt   time.Time // when holdMany last put off events
	pauses   bool      // since heldAt, a search has met an event that is paused

	holds     atomic.Bool // since heldAt, a worker has put off an event
	postponed atomic.Bool // since drain looked last, an event was postponed by a moment
	searchAll atomic.Bool // the next search begins at the start: the end of a claim may not be recorded
	powerless atomic.Bool // the log says that sessions of dead workers cannot be ended

	alive     context.Context // ends when nothing is claimed any more
	stopSigns context.CancelFunc
	signing   sync.WaitGroup // stayAlive
	channel   string         // to listen to; "" for none
	signs     *claims.Signs
	begun     bool

	running sync.Map // of the numbers of claims, by row key
	unended sync.Map // of type unended, by row key

	draining bool // the runner is Drain's: an event that could not be begun twice is left
	mu       sync.Mutex
	notBegun map[string]error // by row key, while draining: nil until the event is left
}

// unended is the end of a claim that could not be recorded, because Postgres did not answer. This runner
// records it when it claims the event again, unless somebody else has ended the claim: another runner takes it
// for a crash, and whoever requeues the event wants another attempt.
type unended struct {
	end   store.End
	cause error
}

// newRunner returns a runner with a number of workers. The caller must call stop.
func (i *Inbox) newRunner(ctx context.Context, workers int) *runner {
	r := &runner{inbox: i, size: workers, idle: make(chan struct{}, workers), signs: claims.NewSigns(i.source.Name()), notBegun: make(map[string]error)}
	r.signs.Own.Replays = workers == 0
	i.working.Add(int32(workers))
	r.alive, r.stopSigns = context.WithCancel(context.WithoutCancel(ctx))
	r.attempts, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for range workers {
		r.idle <- struct{}{}
	}
	return r
}

// leave reports whether Drain leaves an event that could not be begun: it does from the second time on.
func (r *runner) leave(c store.Claim, cause error) bool {
	if !r.draining {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, again := r.notBegun[c.RowKey()]
	r.notBegun[c.RowKey()] = nil
	if again {
		r.notBegun[c.RowKey()] = fmt.Errorf("idem: %s %s could not be begun twice, and is left: see why, then drain again: %w", c.Type, c.ID, cause)
	}
	return again
}

// runningKeys returns the row keys of the events that are claimed.
func (r *runner) runningKeys() []string {
	keys := []string{} // a nil slice would be null in SQL
	for key := range r.running.Range {
		keys = append(keys, key.(string))
	}
	return keys
}

// sign gives a sign of life, and deletes the rows of dead workers, which ends their claims.
func (r *runner) sign(ctx context.Context, db store.DB) error {
	now := time.Now()
	others, err := store.Sign(ctx, db, r.signs.Own, r.signs.Running(now))
	if err != nil {
		r.signs.Lost(time.Now())
		return err
	}
	dead, gone := r.signs.Look(now, others)
	if len(dead) > 0 {
		deleted, err := store.DeleteWorkers(ctx, db, dead)
		if err != nil {
			return err
		}
		for _, w := range dead {
			if slices.Contains(deleted, w.ID) {
				r.inbox.logError(ctx, "webhook workers are dead: others go on with what they had claimed", Event{},
					fmt.Errorf("process %d on %s gave no sign of life for %s", w.PID, w.Host, claims.DeadAfter))
			}
		}
		gone = gone || len(deleted) > 0
	}
	if gone {
		r.searchAll.Store(true)
		r.inbox.wakeOwn()
	}
	return nil
}

// begin gives the first sign of life, without which nothing may be claimed, and starts stayAlive.
func (r *runner) begin(ctx context.Context) error {
	if r.begun {
		return nil
	}
	if err := r.signByPool(ctx); err != nil {
		return err
	}
	r.begun = true
	r.signing.Go(r.stayAlive)
	return nil
}

func (r *runner) signByPool(ctx context.Context) error {
	// A sign under way is answered before the runner ends: Postgres may execute one that was cut off after the
	// worker's row was deleted.
	return exec(context.WithoutCancel(ctx), r.inbox.pool, r.sign)
}

// stayAlive gives signs of life until the runner stops, on a connection of its own: all of the pool's may be
// in use by handlers. A runner that listens is notified on that connection of events that other processes
// store.
func (r *runner) stayAlive() {
	ctx, listening := r.alive, r.channel != ""
	if !listening && !sleep(ctx, claims.SignEvery) { // the connection is not needed earlier
		return
	}
	for failed := 1; ctx.Err() == nil; failed++ {
		wake := func() { failed = 0; r.inbox.wakeOwn() }
		err := pgtx.Protect(func() error { // hooks of the pool are the application's
			return notify.Listen(ctx, r.inbox.pool, r.channel, wake, claims.SignEvery, func(ctx context.Context, conn *pgx.Conn) error { return r.sign(ctx, conn) })
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		r.signs.Lost(time.Now())
		r.inbox.logAway(ctx, "webhook workers have lost the connection on which they listen and say that they are alive", Event{}, err)
		_ = r.signByPool(ctx) // Postgres may allow no further connection
		if failed <= 3 {
			pause(ctx, failed)
		} else {
			sleep(ctx, claims.SignEvery)
		}
	}
}

// deadTime is the time after Timeout from which the session of a dead worker is ended. By then a process that
// is still alive has canceled the handler, which no longer calls a bank.
const deadTime = 5 * time.Second

// endDeadSessions ends the sessions of workers without a row, whose transactions keep their events locked:
// the process was stopped or cut off, and Postgres takes it for a slow client.
func (r *runner) endDeadSessions(ctx context.Context) error {
	i := r.inbox
	dead, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) ([]store.DeadSession, error) {
		return store.FindDeadSessions(ctx, db, i.source.Name())
	})
	if err != nil || len(dead) == 0 {
		return err
	}
	var ended, hidden int
	err = pgtx.AsSelf(ctx, i.pool, func(ctx context.Context, tx pgx.Tx) (err error) {
		ended, hidden, err = store.EndDeadSessions(ctx, tx, dead, i.Timeout+deadTime)
		return err
	})
	if pgtx.SQLState(err) == "42501" { // insufficient_privilege
		hidden, err = len(dead), nil
	}
	if ended > 0 {
		i.logError(ctx, "webhook workers are dead, and had left sessions in Postgres: others go on with their events", Event{}, fmt.Errorf("%d sessions were ended", ended))
		r.searchAll.Store(true)
		i.wakeOwn()
	}
	if hidden > 0 && !r.powerless.Swap(true) {
		i.logError(ctx, "webhook events wait for sessions that dead workers have left, and that this role may not end", Event{},
			fmt.Errorf("%d sessions: have all processes use one role, or grant it pg_signal_backend and pg_read_all_stats", hidden))
	}
	return err
}

// end deletes the worker's row once nothing is claimed any more. An event with a claim that could not be
// ended is then claimed by others, as the events of a dead worker are.
func (r *runner) end() {
	r.inbox.working.Add(-int32(r.size))
	r.stopSigns()
	r.signing.Wait()
	if !r.begun {
		return
	}
	err := exec(context.WithoutCancel(r.alive), r.inbox.pool, func(ctx context.Context, db store.DB) error {
		return store.DeleteWorker(ctx, db, r.signs.Own.ID)
	})
	if err != nil {
		r.inbox.logError(context.WithoutCancel(r.alive), "webhook workers ended without saying so: what they had claimed waits for 12 seconds", Event{}, err)
	}
}
