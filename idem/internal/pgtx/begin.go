package pgtx

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Session identifies a transaction to Postgres. StartedAt is its now(); it is
// zero while the event is not marked.
type Session struct {
	PID       uint32
	StartedAt time.Time
}

// Tx is the transaction of one attempt.
type Tx struct {
	pool    *pgxpool.Pool
	conn    *pgxpool.Conn // nil once it is back in the pool, or closed
	tx      pgx.Tx
	session Session
	ended   bool // COMMIT or ROLLBACK was sent
}

// reach is how long it may take to get a connection and to begin. Statements
// that are answered later than that are, in all likelihood, not answered at all.
const reach = 5 * time.Second

// Begin starts a transaction and executes what mark queues, in one round trip.
// mark's statements set the session if they mark the event.
func Begin(ctx context.Context, pool *pgxpool.Pool, mark func(*pgx.Batch, *Session)) (*Tx, error) {
	reachable, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	// After a restart of Postgres all of the pool's connections may be dead.
	// Nothing is committed yet, so it is safe to go on with the next one.
	for broken := int32(0); ; broken++ {
		t, err := begin(reachable, pool, mark)
		if err == nil {
			return t, nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			replaceAll(pool)
		}
		if !errors.Is(err, errBroken) || reachable.Err() != nil || broken > pool.Stat().MaxConns() {
			return nil, err
		}
	}
}

// Ask calls f with a connection of the pool, outside of a transaction. The answer
// is given up after a while, and the connection with it.
func Ask(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err == nil {
		err = f(ctx, conn)
		giveBack(conn)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		replaceAll(pool)
	}
	return err
}

// replaceAll has the pool replace its connections, after one of them got no
// answer: where a network has forgotten them, each would cost a time-out. A pool
// whose connections are all in use is just too small, and is left alone.
func replaceAll(pool *pgxpool.Pool) {
	if s := pool.Stat(); s.AcquiredConns() < s.MaxConns() {
		pool.Reset()
	}
}

// giveBack returns a connection to its pool. pgx waits up to 15 seconds for the
// end of a broken one, which would take its place in the pool that long.
func giveBack(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		closeNow(conn)
		return
	}
	conn.Release()
}

// closeNow takes a connection out of its pool and closes its socket.
func closeNow(conn *pgxpool.Conn) { _ = conn.Hijack().PgConn().Conn().Close() }

var errBroken = errors.New("the connection is broken")

func begin(ctx context.Context, pool *pgxpool.Pool, mark func(*pgx.Batch, *Session)) (*Tx, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tx{pool: pool, conn: conn}
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	mark(b, &t.session)
	results := conn.SendBatch(ctx, b)
	t.tx = results.Tx()
	if err := results.Close(); err != nil {
		if conn.Conn().IsClosed() {
			err = errors.Join(errBroken, err)
		}
		t.Close(ctx)
		return nil, err
	}
	return t, nil
}

// Marked tells whether the event is this transaction's to process.
func (t *Tx) Marked() bool { return !t.session.StartedAt.IsZero() }
