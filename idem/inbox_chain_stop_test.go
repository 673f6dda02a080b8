package idem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// The workers are stopped between events that follow each other. What is not
// begun is anybody's, and nobody has died with it, even if no connection is free.
func TestStopBetweenEventsThatFollowEachOtherLeavesTheRest(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]struct {
		stop     string
		patience time.Duration
		settled  []string
		done     int
	}{
		"while the handler runs":       {"handler", patience, []string{"a is handled", "b is handled"}, 2},
		"while a hook runs":            {"hook", patience, []string{"a is handled", "b is handled"}, 2},
		"while the outcome is told":    {"observer", patience, []string{"a is handled", "b is handled"}, 2},
		"and the handler is cancelled": {"cancelled handler", time.Millisecond, []string{"a is handled", "b is failed"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChained(t, "a", "b", "c", "d")
			ctx, stop := context.WithCancel(t.Context())
			stopAt := func(id, at string) bool {
				if id != "b" || at != where.stop || ctx.Err() != nil {
					return false
				}
				stop()
				return true
			}
			observe := c.inbox.Observe
			c.inbox.Observe = func(ctx context.Context, o idem.Observation) { observe(ctx, o); stopAt(o.Event.ID, "observer") }
			c.inbox.StopTimeout = where.patience
			c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if where.stop == "hook" {
					idem.AfterCommit(ctx, func(context.Context) { stopAt(n.ID, "hook") })
				}
				err := pay(ctx, tx, n)
				if stopAt(n.ID, "cancelled handler") {
					<-ctx.Done()
					return ctx.Err()
				}
				stopAt(n.ID, "handler")
				return err
			})
			if diff := cmp.Diff(where.settled, c.work(ctx)); diff != "" {
				t.Error("what the worker settled (-want +got):\n" + diff)
			}
			c.wantNoClaim()
			const left = `select count(*) from idem_events where state = 'pending' and attempts = 0 and crashes is null`
			if n := queryOne[int](c.shop, left); n != 4-where.done {
				t.Errorf("%d events wait untried, want %d", n, 4-where.done)
			}
			c.wantEffects(where.done)
			c.due()
			c.work(t.Context())
			c.wantEachOnce("a", "b", "c", "d")
		})
	}
}

// Run is stopped by every third event, and started again, until all are done.
// Its pool has no connection to spare.
func TestRunThatIsStoppedAgainAndAgainDoesEachEventOnce(t *testing.T) {
	t.Parallel()
	const events, workers = 60, 2
	c := openChained(t, func(c *poolConfig) { c.MaxConns = workers })
	c.inbox.Workers = workers
	var mu sync.Mutex
	begun, stop := map[string]int{}, func() {}
	c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		err := pay(ctx, tx, n)
		mu.Lock()
		defer mu.Unlock()
		if begun[n.ID]++; len(begun)%3 == 0 {
			stop()
		}
		return err
	})
	var want []string
	for n := range events {
		want = append(want, fmt.Sprintf("%02d", n))
	}
	c.storeEach(want...)
	for done := 0; done < events; {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		mu.Lock()
		stop = cancel
		mu.Unlock()
		if err := c.inbox.Run(ctx); err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("Run = %v, %v\n%s", err, ctx.Err(), c.logged())
		}
		c.wantNoClaim()
		mu.Lock()
		done = len(begun)
		mu.Unlock()
		c.wantEffects(done)
		const left = `select count(*) from idem_events where state = 'pending' and attempts = 0 and crashes is null`
		if n := queryOne[int](c.shop, left); n != events-done {
			t.Fatalf("%d events wait untried, want %d\n%s", n, events-done, c.logged())
		}
		c.due()
	}
	c.wantEachOnce(want...)
	for id, n := range begun {
		if n != 1 {
			t.Errorf("the handler of %s ran %d times", id, n)
		}
	}
}
