package pgtx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// reach is the time that Begin and Ask may take, getting a connection included. A statement without an answer
// by then will most likely never be answered; if it waits for a lock, giving up only costs the pool a new
// connection.
const reach = 5 * time.Second

// Ask calls f with a connection of the pool, outside of a transaction. Ask gives up the answer, and the
// connection, after 5 seconds. It returns an error although f returned nil if the wait for the synchronous
// replica was broken off.
//
// If the connection breaks, Ask ends the rest of the statement in Postgres, which may hold locks, in the
// background.
func Ask(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	broken, err := ask(ctx, pool, f)
	endLeft(ctx, pool, broken)
	return err
}

// ask is Ask, but does not end the rest of a statement. broken is as in with.
func ask(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) (broken backend, err error) {
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	return with(ctx, pool, func(conn *pgxpool.Conn) error {
		return reliably(ctx, conn.Conn(), func() error { return f(ctx, conn) })
	})
}

// Change calls do with a transaction at Postgres's default isolation, not the
// session's, and commits it, or rolls it back if do returns an error. The error is
// [ErrUnknown] if COMMIT was sent and not answered, or if the answer may not count because the
// wait for the synchronous replica was broken off. The end of ctx ends do, and not COMMIT.
//
// If the connection breaks, Change ends the rest of the transaction in Postgres in the background.
func Change(ctx context.Context, pool *pgxpool.Pool, do func(context.Context, pgx.Tx) error) error {
	broken, err := with(ctx, pool, func(conn *pgxpool.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // no effect after COMMIT
		if err := do(ctx, tx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
		defer cancel()
		return unsure(reliably(ctx, conn.Conn(), func() error { return tx.Commit(ctx) }))
	})
	endLeft(ctx, pool, broken)
	return err
}

// commitTime is the time that the COMMIT of many rows may take.
const commitTime = 30 * time.Second

// unsure returns the error of a COMMIT, as an [ErrUnknown] unless it is certain that nothing
// is committed.
func unsure(err error) error {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) || ok && refused.SeverityUnlocalized == "ERROR" {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// with calls f with a connection of the pool. broken is the process in Postgres of a broken connection, or zero.
func with(ctx context.Context, pool *pgxpool.Pool, f func(*pgxpool.Conn) error) (broken backend, err error) {
	var conn *pgxpool.Conn
	err = Protect(func() (err error) { // hooks of the pool are the application's
		if conn, err = acquire(ctx, pool); err != nil {
			return err
		}
		isNew(conn)
		return f(conn)
	})
	switch {
	case leadsToReplica(conn, err):
		closeNow(conn)
		return backend{}, err
	case conn != nil:
		if conn.Conn().IsClosed() {
			broken = backendOf(conn)
		}
		release(conn)
	}
	replaceAfter(pool, err)
	return broken, err
}

// acquire acquires a connection of the pool. The pool's hooks are the application's.
func acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	return Within(ctx, ErrHookHangs, func() (*pgxpool.Conn, error) { return pool.Acquire(ctx) }, (*pgxpool.Conn).Release)
}

// backend is the process of a connection in Postgres.
type backend struct {
	pid  uint32
	used time.Time // since when: after a restart in a container another process may have the same pid
}

func backendOf(conn *pgxpool.Conn) backend {
	used, _ := conn.Conn().PgConn().CustomData()[firstUsed].(time.Time)
	return backend{conn.Conn().PgConn().PID(), used}
}

// endLeft ends the rest of a statement of this module in Postgres, where a backend holds its locks until it
// notices that its client is gone. endLeft does not wait for the end. Its first tries may get connections
// that a network has forgotten: after each try the pool replaces them. There is no rest if b is zero.
func endLeft(ctx context.Context, pool *pgxpool.Pool, b backend) {
	const sql = `
select pg_terminate_backend(pid) from pg_stat_activity
where pid = $1 and usename = session_user and xact_start is not null and query like '%idem\_%'
  and backend_start <= clock_timestamp() - $2::interval`
	if b.pid != 0 {
		inBackground(ctx, pool, sql, int64(b.pid), time.Since(b.used)*99/100) // no two clocks go alike
	}
}

// inBackground executes a statement in [AsSelf], in three tries, and closes done then.
func inBackground(ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) (done <-chan struct{}) {
	ctx = context.WithoutCancel(ctx)
	end := make(chan struct{})
	go func() {
		defer close(end)
		for range 3 {
			err := AsSelf(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, sql, args...)
				return err
			})
			if err == nil {
				return
			}
		}
	}()
	return end
}

// AsSelf calls f with a transaction in which the role is put aside that the pool's sessions set: it may
// neither see nor end other sessions.
func AsSelf(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, pgx.Tx) error) error {
	_, err := ask(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `set local role none`); err != nil {
				return err
			}
			return f(ctx, tx)
		})
	})
	return err
}

// replaceAfter has the pool replace its connections after one of them got no answer, or cannot write. If a
// network has forgotten the connections, each would cost a time-out; if they lead to a replica, because a
// name was resolved before the end of a failover, they would lead there for as long as the pool keeps them. A
// pool with all connections in use is only too small, and is left alone.
func replaceAfter(pool *pgxpool.Pool, err error) {
	if !errors.Is(err, context.DeadlineExceeded) && !IsReadOnly(err) {
		return
	}
	if s := pool.Stat(); s.AcquiredConns() < s.MaxConns() {
		pool.Reset()
	}
}

// leadsToReplica reports whether a connection is new, and cannot write either. It is closed alone: the others
// would be replaced again and again. conn may be nil.
func leadsToReplica(conn *pgxpool.Conn, err error) bool {
	return conn != nil && IsReadOnly(err) && isNew(conn)
}

// firstUsed is the key in a connection's custom data of the time when this package used it first.
const firstUsed = "github.com/paghooks/paghooks/idem: first used"

// isNew reports whether a connection was made a few seconds ago at most. Call it at each use.
func isNew(conn *pgxpool.Conn) bool {
	data := conn.Conn().PgConn().CustomData()
	at, used := data[firstUsed].(time.Time)
	if !used {
		data[firstUsed] = time.Now()
	}
	return !used || time.Since(at) < newTime
}

const newTime = 10 * time.Second

// release returns a connection to its pool. pgx would keep a broken connection's place in the pool for up to
// 15 seconds: release closes it at once.
func release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		closeNow(conn)
		return
	}
	conn.Release()
}

// closeNow takes a connection out of its pool and closes its socket.
func closeNow(conn *pgxpool.Conn) { _ = conn.Hijack().PgConn().Conn().Close() }
