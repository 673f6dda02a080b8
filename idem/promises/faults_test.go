package promises_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

func TestConnectionCutAtCommitNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for f, want := range map[fault]struct {
		status  int
		outcome idem.Outcome
		effects int
	}{
		cutBeforeCommit: {http.StatusServiceUnavailable, idem.Retrying, 0},
		cutDuringCommit: {http.StatusOK, idem.Done, 1},
		cutAfterCommit:  {http.StatusOK, idem.Done, 1},
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			var network *network
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { network = newNetwork(c) }))
			runs := 0
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error { runs++; return pay(ctx, tx, n) })
			network.next.Store(&f)
			s.WantAnswer(paid("e1"), want.status)
			if got := s.Outcomes(); got[0] != want.outcome || network.fired.Load() != 1 {
				t.Errorf("the outcome is %s after %d faults, want %s after 1", got[0], network.fired.Load(), want.outcome)
			}
			if runs != 1 {
				t.Errorf("the handler ran %d times in one delivery", runs)
			}
			if f != cutAfterCommit { // whose pool has a dead connection for the next delivery to stumble over
				s.WantEffects(want.effects)
			}
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantEffects(1)
		})
	}
}

func TestDeliveriesFailWhilePostgresIsDownAndAreDoneAfterwards(t *testing.T) {
	t.Parallel()
	var network *network
	s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { network = newNetwork(c) }))
	s.On(pay)
	network.down.Store(true)
	for range 3 {
		s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
		s.WantAnswer(`{"id":"e2","type":"new"}`, http.StatusServiceUnavailable)
	}
	network.down.Store(false)
	s.WantEffects(0)
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(`{"id":"e2","type":"new"}`, http.StatusOK)
	s.WantEffects(1)
	s.WantState("e1", idem.StateDone)
	s.WantState("e2", idem.StateUnhandled)
}

func TestConnectionTerminatedUnderTheHandler(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	killed := false
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil || killed {
			return err
		}
		killed = true
		if _, err := s.Pool.Exec(ctx, `select pg_terminate_backend($1)`, tx.Conn().PgConn().PID()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `select 1`)
		return err
	})
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.WantEffects(0)
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
}

func TestClientThatLeavesDoesNotStopTheWork(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	entered, release, observed := make(chan struct{}), make(chan struct{}), make(chan idem.Outcome, 1)
	s.First.Observe = func(_ context.Context, o idem.Observation) { observed <- o.Outcome }
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		if err := ctx.Err(); err != nil {
			return err
		}
		return pay(ctx, tx, n)
	})
	ctx, leave := context.WithCancel(t.Context())
	var delivery sync.WaitGroup
	delivery.Go(func() {
		if _, _, err := s.Post(ctx, paid("e1"), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the client did not leave: %v", err)
		}
	})
	<-entered
	leave()
	delivery.Wait()
	close(release)
	if outcome := <-observed; outcome != idem.Done {
		t.Errorf("the outcome is %s, want done", outcome)
	}
	s.WantEffects(1)
}

func TestPostgresMayNotAskForEver(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	runs := 0
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		runs++
		_, err := tx.Exec(ctx, `do $$ begin raise exception 'again' using errcode = '40001'; end $$`)
		return err
	})
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	if runs < 2 || runs > 10 {
		t.Errorf("the handler ran %d times", runs)
	}
}

func TestRealDeadlockIsRunAgain(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	if _, err := s.Pool.Exec(t.Context(), `create table stock (id int primary key, n int); insert into stock values (1, 0), (2, 0)`); err != nil {
		t.Fatal(err)
	}
	var met sync.WaitGroup // both have locked their first row
	met.Add(2)
	var firsts sync.Map
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		a, b := 1, 2
		if n.ID == "e2" {
			a, b = b, a
		}
		if _, err := tx.Exec(ctx, `update stock set n = n + 1 where id = $1`, a); err != nil {
			return err
		}
		if _, again := firsts.LoadOrStore(n.ID, true); !again {
			met.Done()
			met.Wait()
		}
		_, err := tx.Exec(ctx, `update stock set n = n + 1 where id = $1`, b)
		return err
	})
	var deliveries sync.WaitGroup
	for _, id := range []string{"e1", "e2"} {
		deliveries.Go(func() { s.WantAnswer(about(id, "paid", id), http.StatusOK) })
	}
	deliveries.Wait()
	if got := queryOne[int](s, `select sum(n) from stock`); got != 4 {
		t.Errorf("the stock moved %d times, want 4", got)
	}
}

// fault is a defect of the network to Postgres.
type fault string

const (
	cutBeforeCommit fault = "before COMMIT is sent"
	cutDuringCommit fault = "after COMMIT is sent and before its answer"
	cutAfterCommit  fault = "after the answer to COMMIT"
)

// network dials Postgres and has the next fault it is told.
type network struct {
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	down  atomic.Bool
	next  atomic.Pointer[fault]
	fired atomic.Int32
}

func newNetwork(c *pgxpool.Config) *network {
	n := &network{dial: c.ConnConfig.DialFunc}
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil // COMMIT must be readable
	c.ConnConfig.DialFunc = func(ctx context.Context, kind, addr string) (net.Conn, error) {
		if n.down.Load() {
			return nil, errors.New("network is down")
		}
		conn, err := n.dial(ctx, kind, addr)
		return &wire{Conn: conn, network: n}, err
	}
	return n
}

// wire is one connection of a network.
type wire struct {
	net.Conn
	network *network
	fault   fault // in effect since COMMIT was sent
}

func (w *wire) Write(p []byte) (int, error) {
	if w.network.down.Load() {
		w.Conn.Close()
	}
	if !bytes.Contains(p, []byte("commit\x00")) {
		return w.Conn.Write(p)
	}
	if f := w.network.next.Swap(nil); f != nil {
		w.fault = *f
		w.network.fired.Add(1)
	}
	if w.fault == cutBeforeCommit {
		w.Conn.Close()
	}
	return w.Conn.Write(p)
}

func (w *wire) Read(p []byte) (int, error) {
	switch w.fault {
	case cutDuringCommit:
		_, err := w.Conn.Read(p) // the server has answered: it did commit
		w.Conn.Close()
		if err == nil {
			err = net.ErrClosed
		}
		return 0, err
	case cutAfterCommit:
		n, err := w.Conn.Read(p)
		w.Conn.Close()
		return n, err
	}
	return w.Conn.Read(p)
}

// openForgetful is an app with an inbox of which the connections go through proxy.
func openForgetful(t *testing.T, proxy *pgproxy.Proxy, asRole bool) *app {
	t.Helper()
	url, set := idemtest.URL(t), proxy.Through
	s := openInboxApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	if asRole {
		name := newRole(t, s.Pool)
		execAll(t, s.Pool, mayUse+strings.TrimSuffix(name, "_app")+` to `+name)
		set = func(c *pgxpool.Config) {
			proxy.Through(c)
			c.ConnConfig.RuntimeParams["role"] = name
		}
	}
	s.Inbox = s.NewInbox(openPool(t, url, set))
	s.Inbox.PollOnly = true // no NOTIFY on another connection
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
