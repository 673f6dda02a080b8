package pgproxy_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

func TestForgottenConnectionGetsNothingThroughAndNewOnesWork(t *testing.T) {
	t.Parallel()
	b := newForgetful(t)
	conn, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.Forget()
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, `insert into rows values (1)`)
		conn.Release()
		lost <- err
	}()
	if _, err := open(t, b.pool.Config().ConnString(), b.proxy.Through).Exec(t.Context(), `insert into rows values (2)`); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	cancel()
	if err := <-lost; !errors.Is(err, context.Canceled) {
		t.Errorf("the forgotten one: %v", err)
	}
	if n := b.rows(); n != 1 {
		t.Errorf("%d rows, want that of the new connection", n)
	}
}

func TestForgottenSessionKeepsItsLocksUntilPostgresEndsIt(t *testing.T) {
	t.Parallel()
	b := newForgetful(t)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var backend uint32
	err = tx.QueryRow(t.Context(), `with row as (insert into rows values (1)) select pg_backend_pid()`).Scan(&backend)
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.Forget()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_ = tx.Rollback(canceled) // which Postgres does not hear of
	insert := func() error {
		_, err := b.direct.Exec(t.Context(), `set lock_timeout = 1; insert into rows values (1)`, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	var refused *pgconn.PgError
	if err := insert(); !errors.As(err, &refused) || refused.Code != "55P03" {
		t.Errorf("while the session is there: %v", err)
	}
	b.terminate(backend)
	if err := insert(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestClientOfAForgottenConnectionIsNotTold(t *testing.T) {
	t.Parallel()
	b := newForgetful(t)
	conn, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	b.proxy.Forget()
	b.terminate(conn.Conn().PgConn().PID())
	socket := conn.Conn().PgConn().Conn()
	if err := socket.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := socket.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it read %d bytes, %v", n, err)
	}
}

func TestForgettingAtAPoint(t *testing.T) {
	t.Parallel()
	for point, want := range map[pgproxy.Point]int{pgproxy.BeforeSent: 0, pgproxy.BeforeAnswer: 2} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			b := newForgetful(t)
			b.proxy.Arm(pgproxy.Fault{})
			if err := works["a transaction"](t.Context(), b.pool); err != nil {
				t.Fatal(err)
			}
			steps, _ := b.proxy.Disarm()
			b.pool.Reset()
			if _, err := b.direct.Exec(t.Context(), `truncate rows`); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			b.proxy.Arm(pgproxy.Fault{
				Step: len(steps), Point: point, // COMMIT
				Do: func(uint32) { b.proxy.Forget(); cancel() },
			})
			if err := works["a transaction"](ctx, b.pool); !errors.Is(err, context.Canceled) {
				t.Errorf("the client's error is %v", err)
			}
			if _, fired := b.proxy.Disarm(); !fired || b.rows() != want {
				t.Errorf("fired is %t, %d rows, want %d", fired, b.rows(), want)
			}
		})
	}
}

// newForgetful returns a bench with a pool that closes quickly: pgx waits 15 seconds for the
// end of a connection after its statement was canceled, and none comes.
func newForgetful(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, pgx.QueryExecModeExec)
	var mu sync.Mutex
	var sockets []net.Conn
	b.pool = open(t, b.pool.Config().ConnString(), func(c *pgxpool.Config) {
		b.proxy.Through(c)
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		proxied := c.ConnConfig.AfterNetConnect
		c.ConnConfig.AfterNetConnect = func(ctx context.Context, config *pgconn.Config, server net.Conn) (net.Conn, error) {
			socket, err := proxied(ctx, config, server)
			mu.Lock()
			defer mu.Unlock()
			sockets = append(sockets, socket)
			return socket, err
		}
	})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, socket := range sockets {
			_ = socket.Close()
		}
	})
	return b
}

// terminate ends a session, and waits until it is gone.
func (b *bench) terminate(backend uint32) {
	b.Helper()
	if _, err := b.direct.Exec(b.Context(), `select pg_terminate_backend($1)`, backend); err != nil {
		b.Fatal(err)
	}
	for there := true; there; {
		err := b.direct.QueryRow(b.Context(), `select exists (select from pg_stat_activity where pid = $1)`, backend).Scan(&there)
		if err != nil {
			b.Fatal(err)
		}
	}
}
