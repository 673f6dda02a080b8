package idem

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const (
	// signEvery is how often a runner gives a sign of life.
	signEvery = 2 * time.Second
	// deadAfter is how long another runner gave no sign when it is dead. The one that sees that
	// first deletes its row, and others see one sign later that it is gone: 12 seconds in all.
	deadAfter = 8 * time.Second
)

// signs is a runner's own sign of life, and what it has seen of the others.
//
// Whether another one is alive is judged by this process's clock, from when it was seen to
// give a sign. So nothing dies when the database's clock is changed, or when Postgres could
// not be reached, by any of them. Only one that is met for the first time is judged by the
// database's clock.
type signs struct {
	own     store.Worker
	started time.Time
	others  map[int64]seen
}

// seen is the last sign of another runner.
type seen struct {
	at   time.Time // by the database's clock
	here time.Time // when that was, by this one's
}

func newSigns(source string) *signs {
	host, _ := os.Hostname() // for people
	return &signs{
		own:     store.Worker{ID: rand.Int64(), Source: source, Host: host, PID: os.Getpid()},
		started: time.Now(), others: make(map[int64]seen),
	}
}

// look takes down the signs of all others, and returns those that are dead. gone
// reports whether any that was there is not there any more.
func (s *signs) look(now time.Time, others []store.Worker) (dead []store.Worker, gone bool) {
	before := s.others
	s.others = make(map[int64]seen, len(others))
	for _, w := range others {
		last, met := before[w.ID]
		delete(before, w.ID)
		switch {
		case !met:
			last = seen{w.SeenAt, now.Add(-max(w.Silent, 0))}
		case !last.at.Equal(w.SeenAt):
			last = seen{w.SeenAt, now.Add(-min(max(w.Silent, 0), signEvery))}
		}
		s.others[w.ID] = last
		if now.Sub(last.here) >= deadAfter {
			dead = append(dead, w)
		}
	}
	return dead, len(before) > 0
}

// lost is for when Postgres could not be reached: the others may not have reached it either.
func (s *signs) lost(now time.Time) {
	for id, last := range s.others {
		last.here = now
		s.others[id] = last
	}
}

// sign gives a sign of life, and has the claims of runners that give none be found.
func (r *runner) sign(ctx context.Context, db store.DB) error {
	now := time.Now()
	others, err := store.Sign(ctx, db, r.signs.own, now.Sub(r.signs.started))
	if err != nil {
		r.signs.lost(time.Now())
		return err
	}
	dead, gone := r.signs.look(now, others)
	if len(dead) > 0 {
		deleted, err := store.DeleteWorkers(ctx, db, dead)
		if err != nil {
			return err
		}
		for _, w := range dead {
			if slices.Contains(deleted, w.ID) {
				r.inbox.logError(ctx, "webhook workers are dead: others go on with what they had claimed", Event{},
					fmt.Errorf("process %d on %s gave no sign of life for %s", w.PID, w.Host, deadAfter))
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

// begin gives the first sign of life, without which nothing may be claimed, and has
// others follow until the runner stops.
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
	_, err := ask(ctx, r.inbox.pool, func(ctx context.Context, db store.DB) (struct{}, error) { return struct{}{}, r.sign(ctx, db) })
	return err
}

// stayAlive gives signs of life until the runner stops, on a connection of its own: all of
// the pool's may be in use by handlers. A runner that listens is told there what other
// processes store.
func (r *runner) stayAlive() {
	ctx, listening := r.alive, r.channel != ""
	if !listening && !sleep(ctx, signEvery) { // nothing else needs the connection before
		return
	}
	for failed := 1; ctx.Err() == nil; failed++ {
		wake := func() { failed = 0; r.inbox.wakeOwn() }
		err := pgtx.Protect(func() error { // hooks of the pool are the application's
			return notify.Listen(ctx, r.inbox.pool, r.channel, wake, signEvery, func(ctx context.Context, conn *pgx.Conn) error { return r.sign(ctx, conn) })
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		r.signs.lost(time.Now())
		r.inbox.logError(ctx, "webhook workers have lost the connection on which they listen and say that they are alive", Event{}, err)
		_ = r.signByPool(ctx) // Postgres may have no place for another connection
		pause(ctx, failed)
	}
}

// end is for when nothing is claimed any more. What could not be released is the next
// worker's, as what a dead one had claimed.
func (r *runner) end() {
	r.stopSigns()
	r.signing.Wait()
	if !r.begun {
		return
	}
	_, err := ask(context.WithoutCancel(r.alive), r.inbox.pool, func(ctx context.Context, db store.DB) (struct{}, error) {
		return struct{}{}, store.DeleteWorker(ctx, db, r.signs.own.ID)
	})
	if err != nil {
		r.inbox.logError(context.WithoutCancel(r.alive), "webhook workers ended without saying so: what they had claimed waits for 12 seconds", Event{}, err)
	}
}
