package idem_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// No attempt's time is up for an hour: what has no answer is given up before that.
func TestWorkersGoOnOverNewConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		whileTheyWait, afterAClaim bool
		timeout                    time.Duration
	}{
		"forgotten while they wait": {whileTheyWait: true, timeout: time.Second}, // a claim may be on its way then: it ends with its lease
		"forgotten after a claim":   {afterAClaim: true, timeout: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openInboxApp(t, poolOf(t, 4))
			s.on(pay)
			forget := sync.OnceFunc(proxy.Forget)
			claimed := &meanwhile{s.notes, func() {
				if c.afterAClaim {
					forget()
				}
			}}
			worker := idem.NewInbox(openPool(t, s.pool.Config().ConnString(), proxy.Through), claimed)
			worker.Workers, worker.PollOnly, worker.Timeout, worker.Poll = 1, true, c.timeout, 10*time.Millisecond
			worker.Logger, worker.Observe = s.logger(), s.observe
			s.start(worker)
			s.store(letter("e1", "o1", 1))
			for s.next().Outcome != idem.Done {
			}
			if c.whileTheyWait {
				forget()
			}
			s.store(letter("e2", "o1", 2))
			s.wantWorked(idem.Done)
			s.wantEffects(2)
		})
	}
}

// One delivery finds out that the network has forgotten the pool's connections.
// The next has a new one, however many there were, and if there is place for one.
func TestOneDeliveryFailsWhenTheNetworkForgetsThePool(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{1, 4} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				proxy.Through(c)
				c.MaxConns = int32(conns)
			}))
			var handling, deliveries sync.WaitGroup
			handling.Add(conns)
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID != "last" {
					handling.Done()
					handling.Wait() // so that each has a connection
				}
				return pay(ctx, tx, n)
			})
			for n := range conns {
				deliveries.Go(func() { s.accept(paid(fmt.Sprint(n)), idem.Done) })
			}
			deliveries.Wait()
			proxy.Forget()
			last := identify([]byte(paid("last")))
			if o, err := s.processor.Accept(t.Context(), last); o != idem.Retrying || err == nil {
				t.Errorf("the first delivery is %s, %v, want retrying", o, err)
			}
			if o, err := s.processor.Accept(t.Context(), last); o != idem.Done || err != nil {
				t.Errorf("the second delivery is %s, %v, want done", o, err)
			}
		})
	}
}
