package pgproxy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/internal/testkit"
)

// bench is a database with one table, reached directly and through a proxy.
type bench struct {
	*testing.T
	proxy  *pgproxy.Proxy
	pool   *pgxpool.Pool // through the proxy, one connection
	direct *pgxpool.Pool
}

func newBench(t *testing.T, mode pgx.QueryExecMode) *bench {
	t.Helper()
	url := idemtest.URL(t)
	b := &bench{T: t, proxy: new(pgproxy.Proxy)}
	b.direct = open(t, url, func(*pgxpool.Config) {})
	b.pool = open(t, url, func(c *pgxpool.Config) {
		b.proxy.Through(c)
		c.MaxConns = 1
		c.ConnConfig.DefaultQueryExecMode = mode
	})
	if _, err := b.direct.Exec(t.Context(), `create table rows (n int primary key, text text not null default '')`); err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, url string, set func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	set(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (b *bench) rows() (n int) {
	b.Helper()
	if err := b.direct.QueryRow(b.Context(), `select count(*) from rows`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// works are things to do, each of which writes two rows or none.
var works = map[string]func(ctx context.Context, pool *pgxpool.Pool) error{
	"an autocommitted statement": func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.Exec(ctx, `insert into rows values ($1), ($2)`, 1, 2)
		return err
	},
	"a transaction": func(ctx context.Context, pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			for n := range 2 {
				if _, err := tx.Exec(ctx, `insert into rows values ($1)`, n); err != nil {
					return err
				}
			}
			return nil
		})
	},
	"an error that a savepoint undoes": func(ctx context.Context, pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `insert into rows values ($1), ($2)`, 1, 2); err != nil {
				return err
			}
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `insert into rows values ($1)`, 1)
				return err
			})
			if err == nil {
				return errors.New("the same row twice")
			}
			return nil
		})
	},
	"a pipelined batch": func(ctx context.Context, pool *pgxpool.Pool) error {
		batch := &pgx.Batch{}
		for n := range 2 {
			batch.Queue(`insert into rows values ($1)`, n)
		}
		return pool.SendBatch(ctx, batch).Close()
	},
	"a batch of several buffers": func(ctx context.Context, pool *pgxpool.Pool) error {
		batch := &pgx.Batch{}
		for n := range 2 {
			batch.Queue(`insert into rows values ($1, $2)`, n, strings.Repeat("long", 50_000))
		}
		return pool.SendBatch(ctx, batch).Close()
	},
	"a copy": func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.CopyFrom(ctx, pgx.Identifier{"rows"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}, {2}}))
		return err
	},
	"a query with rows": func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `insert into rows select generate_series($1::int, $2::int) returning n`, 1, 2)
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	},
}

// The rows in the database after a cut follow from the point alone: the work is
// there once Postgres has got the last message, and the client has an error
// unless it got the last answer.
func TestEveryCutIsAtItsPoint(t *testing.T) {
	t.Parallel()
	for name, work := range works {
		for _, mode := range testkit.First(1, []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}) {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, mode)
				b.proxy.Arm(pgproxy.Fault{})
				if err := work(t.Context(), b.pool); err != nil || b.rows() != 2 {
					t.Fatalf("%d rows, %v without a fault", b.rows(), err)
				}
				clean, _ := b.proxy.Disarm()
				for _, point := range pgproxy.Points {
					for _, step := range clean {
						b.cut(work, pgproxy.Fault{Step: step.Number, Point: point}, clean)
					}
				}
			})
		}
	}
}

func (b *bench) cut(work func(context.Context, *pgxpool.Pool) error, f pgproxy.Fault, clean []pgproxy.Step) {
	b.Helper()
	b.pool.Reset() // a connection as new as the clean one was
	b.awaitSilence()
	if _, err := b.direct.Exec(b.Context(), `truncate rows`); err != nil {
		b.Fatal(err)
	}
	b.proxy.Arm(f)
	err := work(b.Context(), b.pool)
	steps, fired := b.proxy.Disarm()
	step, last := clean[f.Step-1], f.Step == len(clean)
	if !fired || steps[f.Step-1] != step {
		b.Fatalf("%s: fired is %t, and these are the steps: %v", step, fired, steps)
	}
	want := 0
	if last && f.Point != pgproxy.BeforeSent {
		want = 2
	}
	if got := b.rows(); got != want {
		b.Errorf("%s, cut %s: %d rows, want %d", step, f.Point, got, want)
	}
	if answered := last && f.Point == pgproxy.AfterAnswer; answered != (err == nil) {
		b.Errorf("%s, cut %s: the client's error is %v", step, f.Point, err)
	}
	if n := b.sessions(); n != 0 {
		b.Errorf("%s, cut %s: %d sessions are left", step, f.Point, n)
	}
}

// sessions counts those of others in the schema.
func (b *bench) sessions() (n int) {
	b.Helper()
	const others = `select count(*) from pg_stat_activity
		where application_name = current_setting('application_name') and pid <> pg_backend_pid()`
	if err := b.direct.QueryRow(b.Context(), others).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// awaitSilence waits for the end of sessions that were closed: no other function does.
func (b *bench) awaitSilence() {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); b.sessions() > 0; {
		if time.Now().After(end) {
			b.Fatal("a closed session does not end")
		}
	}
}

func TestStepsNameMessagesAndStatementsWithoutValues(t *testing.T) {
	t.Parallel()
	for mode, want := range map[pgx.QueryExecMode]string{
		pgx.QueryExecModeCacheStatement: `message 1, StartupMessage
message 2, Query of "begin"
message 3, Parse of "insert into rows values ($1, $2)"
message 4, Describe of "insert into rows values ($1, $2)"
message 5, Sync of "insert into rows values ($1, $2)"
message 6, Bind of "insert into rows values ($1, $2)"
message 7, Describe of "insert into rows values ($1, $2)"
message 8, Execute of "insert into rows values ($1, $2)"
message 9, Sync of "insert into rows values ($1, $2)"
message 10, Query of "commit"
`,
		pgx.QueryExecModeSimpleProtocol: `message 1, StartupMessage
message 2, Query of "begin"
message 3, Query of "insert into rows values ( … , … )"
message 4, Query of "commit"
`,
	} {
		b := newBench(t, mode)
		b.proxy.Arm(pgproxy.Fault{})
		err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "insert into rows\nvalues ($1, $2)", 42, "Maria's order")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		steps, _ := b.proxy.Disarm()
		var got strings.Builder
		passwords := 0 // messages of a database that wants one
		for _, s := range steps {
			if s.Message == "PasswordMessage" {
				passwords++
				continue
			}
			s.Number -= passwords
			fmt.Fprintln(&got, s)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

func TestFaultThatDoesNotHappenIsKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t, pgx.QueryExecModeExec)
	b.proxy.Arm(pgproxy.Fault{Step: 1000, Point: pgproxy.BeforeSent})
	if err := works["a transaction"](t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	if _, fired := b.proxy.Disarm(); fired {
		t.Error("a fault happened at a step that was not reached")
	}
}

// A test may do something at a point, and the work goes on.
func TestCallIsAtItsPoint(t *testing.T) {
	t.Parallel()
	for point, want := range map[pgproxy.Point]int{pgproxy.BeforeSent: 0, pgproxy.BeforeAnswer: 2, pgproxy.AfterAnswer: 2} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pgx.QueryExecModeExec)
			b.proxy.Arm(pgproxy.Fault{})
			if err := b.pool.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			start, _ := b.proxy.Disarm()
			b.pool.Reset()
			var backend uint32
			rows := -1
			b.proxy.Arm(pgproxy.Fault{
				Step: len(start) + 4, Point: point, // Parse, Bind, Describe, Execute, Sync
				Do: func(pid uint32) { backend, rows = pid, b.rows() },
			})
			err := works["an autocommitted statement"](t.Context(), b.pool)
			if steps, fired := b.proxy.Disarm(); !fired || err != nil {
				t.Fatalf("fired is %t, %v, at %v", fired, err, steps)
			}
			var pid uint32
			if err := b.pool.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil || pid != backend {
				t.Errorf("the call got the server process %d, want %d, %v", backend, pid, err)
			}
			if rows != want || b.rows() != 2 {
				t.Errorf("%d rows at the point and %d afterwards, want %d and 2", rows, b.rows(), want)
			}
		})
	}
}

func TestPoolerGivesEachTransactionAnotherSession(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pooler, err := pgproxy.NewPooler(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pooler.Close(); err != nil {
			t.Error(err)
		}
	})
	pool := open(t, url, func(c *pgxpool.Config) {
		pooler.Through(c)
		c.MaxConns = 1
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	})
	var first, second, other int
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return errors.Join(
			tx.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&first),
			tx.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&second))
	})
	if err != nil || first != second {
		t.Errorf("a transaction is on sessions %d and %d, %v", first, second, err)
	}
	if err := pool.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&other); err != nil || other == first {
		t.Errorf("the next transaction is on session %d again, %v", other, err)
	}
}

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
