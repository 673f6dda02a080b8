//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// No attempt's time is up for an hour: what has no answer is given up before that.
func TestWorkersGoOnOverNewConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		whileTheyWait, afterAClaim bool
		timeout                    time.Duration
	}{
		"forgotten while they wait": {whileTheyWait: true, timeout: 10 * time.Second}, // a claim may be on its way then: it ends with its lease
		"forgotten after a claim":   {afterAClaim: true, timeout: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openInboxApp(t, poolOf(t, 4))
			s.On(pay)
			forget := sync.OnceFunc(proxy.Forget)
			claimed := &meanwhile{s.Notes, func() {
				if c.afterAClaim {
					forget()
				}
			}}
			worker := idem.NewInbox(openPool(t, s.Pool.Config().ConnString(), proxy.Through), claimed)
			worker.Workers, worker.PollOnly, worker.Timeout, worker.Poll = 1, true, c.timeout, 10*time.Millisecond
			worker.Logger, worker.Observe = s.Logger(), s.Observe
			s.Start(worker)
			s.Store(letter("e1", "o1", 1))
			for s.Next().Outcome != idem.Done {
			}
			if c.whileTheyWait {
				forget()
			}
			s.Store(letter("e2", "o1", 2))
			s.WantWorked(idem.Done)
			s.WantEffects(2)
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
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID != "last" {
					handling.Done()
					handling.Wait() // so that each has a connection
				}
				return pay(ctx, tx, n)
			})
			for n := range conns {
				deliveries.Go(func() { s.accept(about(fmt.Sprint(n), "paid", fmt.Sprint(n)), idem.Done) })
			}
			deliveries.Wait()
			proxy.Forget()
			last := identify([]byte(paid("last")))
			if o, err := s.First.Accept(t.Context(), last); o != idem.Retrying || err == nil {
				t.Errorf("the first delivery is %s, %v, want retrying", o, err)
			}
			if o, err := s.First.Accept(t.Context(), last); o != idem.Done || err != nil {
				t.Errorf("the second delivery is %s, %v, want done", o, err)
			}
		})
	}
}

// The network forgets a delivery between its INSERT and its COMMIT: Postgres holds the row, and
// would for hours. The sessions of a pool may have a role that they set.
func TestEventWhoseCommitTheNetworkForgetsIsStoredByALaterDelivery(t *testing.T) {
	t.Parallel()
	for name, isRole := range map[string]bool{"the role that logs in": false, "another role": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openForgetful(t, proxy, isRole)
			s.Store(letter("e1", "o1", 1)) // its statements are prepared now
			atCommit := commitOf(t, proxy, func() { s.Store(letter("e2", "o2", 2)) })
			proxy.Arm(pgproxy.Fault{Step: atCommit, Point: pgproxy.BeforeSent, Do: func(uint32) { proxy.Forget() }})
			lost := letter("e3", "o3", 3)
			if o, err := s.Inbox.Accept(t.Context(), lost); o != idem.Retrying || err == nil {
				t.Errorf("Accept = %s, %v, want retrying", o, err)
			}
			if _, fired := proxy.Disarm(); !fired {
				t.Fatal("the network forgot nothing")
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for o := idem.Retrying; !o.Acknowledged(); pause() {
				if o, _ = s.Inbox.Accept(ctx, lost); ctx.Err() != nil {
					t.Fatal("the event is not stored: Postgres still holds its row")
				}
			}
			s.WantState("e3", idem.StatePending)
		})
	}
}

// The network forgets an attempt before its handler runs. Postgres has marked the event, or knows that its entity is
// being processed, and would for hours, while the process lives.
func TestAttemptWhoseBeginTheNetworkForgetsKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost  pgproxy.Point
		first string                                   // message that is lost
		of    string                                   // the statement that it is about, by its first words
		begin func(ctx context.Context, s *app, n int) // an attempt that is lost
		after func(ctx context.Context, s *app, n int) error
	}{
		"a delivery": {
			pgproxy.BeforeAnswer, "Execute", "insert into idem_events",
			func(ctx context.Context, s *app, n int) {
				_, _ = s.First.Accept(ctx, letter(fmt.Sprint("e", n), "o1", n))
			},
			func(ctx context.Context, s *app, n int) error {
				_, err := s.First.Accept(ctx, letter(fmt.Sprint("e", n), "o1", n))
				return err
			},
		},
		"a worker's": {
			pgproxy.BeforeAnswer, "Execute", "update idem_events e set state = 'done'",
			func(ctx context.Context, s *app, n int) {
				s.Store(letter(fmt.Sprint("e", n), "o1", n))
				_ = s.Inbox.Drain(ctx)
			},
			func(ctx context.Context, s *app, _ int) error { return s.Inbox.Drain(ctx) },
		},
		"a replay that has found an earlier event": {
			pgproxy.BeforeSent, "Query", "rollback",
			func(ctx context.Context, s *app, n int) {
				s.Exec(`update idem_payloads set lane = null`) // done with by now
				s.Store(letter(fmt.Sprint("bad", n), "o1", 2*n), letter(fmt.Sprint("e", n), "o1", 2*n+1))
				execAll(t, s.Pool, `update idem_events set state = 'parked' where event like '%bad%'; update idem_payloads set due_at = null`)
				_, _ = s.First.Replay(ctx, idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{fmt.Sprint("e", n)}})
			},
			func(ctx context.Context, s *app, n int) error {
				_, err := s.First.Replay(ctx, idem.Filter{States: []idem.State{idem.StatePending, idem.StateParked}, Keys: []string{"o1"}})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openForgetful(t, proxy, false)
			s.Inbox.Workers = 1
			s.On(pay)
			s.First = newFirst(engineOf(s.Inbox).Pool(), s.Notes)
			s.First.Observe, s.First.Logger = s.Observe, s.Logger()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.begin(ctx, s, 1) // its statements are prepared now
			proxy.Arm(pgproxy.Fault{})
			c.begin(ctx, s, 2)
			steps, _ := proxy.Disarm()
			at := slices.IndexFunc(steps, func(s pgproxy.Step) bool { return s.Message == c.first && strings.HasPrefix(s.Statement, c.of) })
			if at < 0 {
				t.Fatalf("no step is the %s of %q: %v", c.first, c.of, steps)
			}
			proxy.Arm(pgproxy.Fault{Step: at + 1, Point: c.lost, Do: func(uint32) { proxy.Forget() }})
			c.begin(ctx, s, 3)
			if _, fired := proxy.Disarm(); !fired {
				t.Fatal("the network forgot nothing")
			}
			for ; queryOne[string](s, `select coalesce(max(state), '') from idem_events where event = 'notes//e3'`) != "done"; pause() {
				if err := c.after(ctx, s, 3); ctx.Err() != nil {
					t.Fatal("Postgres still holds what the attempt has locked: ", err)
				}
			}
		})
	}
}

// The same of a person's actions: a discard leaves events that are locked, and a second Stop would wait.
func TestActionWhoseCommitTheNetworkForgetsIsDoneByALaterOne(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(ctx context.Context, s *app, n int) error{
		"discard": func(ctx context.Context, s *app, n int) error {
			discarded, err := s.Inbox.Discard(ctx, idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{fmt.Sprint("e", n)}}, "a test")
			if err == nil && discarded != 1 {
				err = errors.New("the event is being processed, as it seems")
			}
			return err
		},
		"stop": func(ctx context.Context, s *app, n int) error {
			return operator.New(s.Inbox, "ana").Stop(ctx, int64(n), "a test")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openForgetful(t, proxy, false)
			for n := 1; n <= 3; n++ {
				s.Store(letter(fmt.Sprint("e", n), fmt.Sprint("o", n), n))
				execAll(t, s.Pool, `insert into idem_audit (id, actor, action, source, filter, reason, events, seen_at)
					values (`+fmt.Sprint(n)+`, 'eva', 'replay', 'notes', '', '', '{}', now() + interval '1 day')`) // it is alive
			}
			try := func(ctx context.Context, n int) {
				t.Helper()
				if err := act(ctx, s, n); err != nil {
					t.Fatal(err)
				}
			}
			try(t.Context(), 1) // its statements are prepared now
			atCommit := commitOf(t, proxy, func() { try(t.Context(), 2) })
			ctx, cancel := context.WithCancel(t.Context())
			proxy.Arm(pgproxy.Fault{Step: atCommit, Point: pgproxy.BeforeSent, Do: func(uint32) { proxy.Forget(); cancel() }})
			if err := act(ctx, s, 3); err == nil {
				t.Error("an action without an answer has no error")
			}
			if _, fired := proxy.Disarm(); !fired {
				t.Fatal("the network forgot nothing")
			}
			ctx, cancel = context.WithTimeout(t.Context(), patience)
			defer cancel()
			for err := errors.New("not yet"); err != nil; pause() {
				if err = act(ctx, s, 3); ctx.Err() != nil {
					t.Fatal("Postgres still holds the rows of the first try: ", err)
				}
			}
		})
	}
}
