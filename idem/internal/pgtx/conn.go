package pgtx

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// reach is how long Begin and Ask may take, getting a connection included. Statements
// that are answered later than that are, in all likelihood, not answered at all;
// or they wait for a lock, and then the pool's new connections cost some time only.
const reach = 5 * time.Second

// Ask calls f with a connection of the pool, outside of a transaction. The answer
// is given up after a while, and the connection with it. What f reports as stored is
// not, to Ask, if its wait for the synchronous replica was broken off.
func Ask(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	var conn *pgxpool.Conn
	err := Protect(func() (err error) { // hooks of the pool are the application's
		if conn, err = pool.Acquire(ctx); err != nil {
			return err
		}
		return reliably(ctx, conn, func() error { return f(ctx, conn) })
	})
	if conn != nil {
		release(conn)
	}
	replaceAfter(pool, err)
	return err
}

// replaceAfter has the pool replace its connections, after one of them got no
// answer, or cannot write: where a network has forgotten them, each would cost a
// time-out; where they lead to a replica, because a name was resolved before a
// failover was over, they would do so for as long as the pool keeps them. A pool
// whose connections are all in use is just too small, and is left alone.
func replaceAfter(pool *pgxpool.Pool, err error) {
	if !errors.Is(err, context.DeadlineExceeded) && SQLState(err) != readOnly {
		return
	}
	if s := pool.Stat(); s.AcquiredConns() < s.MaxConns() {
		pool.Reset()
	}
}

// release returns a connection to its pool. pgx waits up to 15 seconds for the
// end of a broken one, which would take its place in the pool that long.
func release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		closeNow(conn)
		return
	}
	conn.Release()
}

// closeNow takes a connection out of its pool and closes its socket.
func closeNow(conn *pgxpool.Conn) { _ = conn.Hijack().PgConn().Conn().Close() }
