package idem_test

import (
	"context"
	"fmt"
	"slices"
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

// The network forgets a delivery between its INSERT and its COMMIT: Postgres holds the row, and
// would for hours.
func TestEventWhoseCommitTheNetworkForgetsIsStoredByALaterDelivery(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	s := openInboxApp(t, openPool(t, idemtest.URL(t), proxy.Through))
	s.inbox.PollOnly = true        // no NOTIFY on another connection
	s.store(letter("e1", "o1", 1)) // its statements are prepared now
	proxy.Arm(pgproxy.Fault{})
	s.store(letter("e2", "o2", 2))
	steps, _ := proxy.Disarm()
	commit := slices.IndexFunc(steps, func(s pgproxy.Step) bool { return s.Statement == "commit" })
	if commit < 0 {
		t.Fatalf("no step is a commit: %v", steps)
	}
	proxy.Arm(pgproxy.Fault{Step: steps[commit].Number, Point: pgproxy.BeforeSent, Do: func(uint32) { proxy.Forget() }})
	lost := letter("e3", "o3", 3)
	if o, err := s.inbox.Accept(t.Context(), lost); o != idem.Retrying || err == nil {
		t.Errorf("Accept = %s, %v, want retrying", o, err)
	}
	if _, fired := proxy.Disarm(); !fired {
		t.Fatal("the network forgot nothing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for o := idem.Retrying; !o.Acknowledged(); pause() {
		if o, _ = s.inbox.Accept(ctx, lost); ctx.Err() != nil {
			t.Fatal("the event is not stored: Postgres still holds its row")
		}
	}
	s.wantState("e3", idem.StatePending)
}
