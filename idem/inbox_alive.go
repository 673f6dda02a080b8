package idem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/claims"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// sign gives a sign of life, and frees the claims of runners that give none.
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
// the pool's may be in use by handlers. A runner that listens learns there of events that other
// processes store.
func (r *runner) stayAlive() {
	ctx, listening := r.alive, r.channel != ""
	if !listening && !sleep(ctx, claims.SignEvery) { // nothing else needs the connection before
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
		r.inbox.logError(ctx, "webhook workers have lost the connection on which they listen and say that they are alive", Event{}, err)
		_ = r.signByPool(ctx) // Postgres may have no place for another connection
		pause(ctx, failed)
	}
}

// end is called once nothing is claimed any more. An event with a claim that could not be ended is the next
// worker's, like those that a dead one had claimed.
func (r *runner) end() {
	r.stopSigns()
	r.signing.Wait()
	if !r.begun {
		return
	}
	_, err := ask(context.WithoutCancel(r.alive), r.inbox.pool, func(ctx context.Context, db store.DB) (struct{}, error) {
		return struct{}{}, store.DeleteWorker(ctx, db, r.signs.Own.ID)
	})
	if err != nil {
		r.inbox.logError(context.WithoutCancel(r.alive), "webhook workers ended without saying so: what they had claimed waits for 12 seconds", Event{}, err)
	}
}
