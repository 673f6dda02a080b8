package idem_test

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
	"github.com/paghooks/paghooks/idem/operator"
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
// would for hours. The sessions of a pool may have a role that they set.
func TestEventWhoseCommitTheNetworkForgetsIsStoredByALaterDelivery(t *testing.T) {
	t.Parallel()
	for name, isRole := range map[string]bool{"the role that logs in": false, "another role": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openForgetful(t, proxy, isRole)
			s.store(letter("e1", "o1", 1)) // its statements are prepared now
			atCommit := commitOf(t, proxy, func() { s.store(letter("e2", "o2", 2)) })
			proxy.Arm(pgproxy.Fault{Step: atCommit, Point: pgproxy.BeforeSent, Do: func(uint32) { proxy.Forget() }})
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
		})
	}
}

// The same of a person's actions: a discard leaves events that are locked, and a second Stop would wait.
func TestActionWhoseCommitTheNetworkForgetsIsDoneByALaterOne(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(ctx context.Context, s *app, n int) error{
		"discard": func(ctx context.Context, s *app, n int) error {
			discarded, err := s.inbox.Discard(ctx, idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{fmt.Sprint("e", n)}}, "a test")
			if err == nil && discarded != 1 {
				err = errors.New("the event is being processed, as it seems")
			}
			return err
		},
		"stop": func(ctx context.Context, s *app, n int) error {
			return operator.New(s.inbox, "ana").Stop(ctx, int64(n), "a test")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := new(pgproxy.Proxy)
			s := openForgetful(t, proxy, false)
			for n := 1; n <= 3; n++ {
				s.store(letter(fmt.Sprint("e", n), fmt.Sprint("o", n), n))
				execAll(t, s.pool, `insert into idem_audit (actor, action, source, filter, reason, events, seen_at)
					values ('eva', 'replay', 'notes', '', '', '{}', now() + interval '1 day')`) // it is alive
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

// openForgetful is an app with an inbox of which the connections go through proxy.
func openForgetful(t *testing.T, proxy *pgproxy.Proxy, asRole bool) *app {
	t.Helper()
	url, set := idemtest.URL(t), proxy.Through
	s := openInboxApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	if asRole {
		name := newRole(t, s.pool)
		execAll(t, s.pool, mayUse+strings.TrimSuffix(name, "_app")+` to `+name)
		set = func(c *pgxpool.Config) {
			proxy.Through(c)
			c.ConnConfig.RuntimeParams["role"] = name
		}
	}
	s.inbox = s.newInbox(openPool(t, url, set))
	s.inbox.PollOnly = true // no NOTIFY on another connection
	return s
}

// commitOf returns the number of the first step of f that is a COMMIT.
func commitOf(t *testing.T, proxy *pgproxy.Proxy, f func()) int {
	t.Helper()
	proxy.Arm(pgproxy.Fault{})
	f()
	steps, _ := proxy.Disarm()
	commit := slices.IndexFunc(steps, func(s pgproxy.Step) bool { return s.Statement == "commit" })
	if commit < 0 {
		t.Fatalf("no step is a commit: %v", steps)
	}
	return steps[commit].Number
}
