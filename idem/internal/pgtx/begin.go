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

	SearchPath, Role, SynchronousCommit string // before the handler changes them

	Strict bool // stricter than read committed: it does not see rows that others commit meanwhile
}

// Tx is the transaction of one attempt.
type Tx struct {
	pool    *pgxpool.Pool
	conn    *pgxpool.Conn // nil once it is back in the pool, or closed
	tx      pgx.Tx
	session Session
	ended   bool // COMMIT or ROLLBACK was sent

	handler *state // the handler's use of it, once it runs
}

// Begin starts a transaction and executes the statements that mark queues, in one round trip.
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
		replaceAfter(pool, err)
		if !errors.Is(err, errBroken) || reachable.Err() != nil || broken > pool.Stat().MaxConns() {
			return nil, err
		}
	}
}

var errBroken = errors.New("the connection is broken")

func begin(ctx context.Context, pool *pgxpool.Pool, mark func(*pgx.Batch, *Session)) (*Tx, error) {
	t := &Tx{pool: pool, handler: new(state)}
	err := Protect(func() (err error) { // hooks of the pool are the application's
		if t.conn, err = pool.Acquire(ctx); err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.BeginTx(pgx.TxOptions{})
		mark(b, &t.session)
		results := t.conn.SendBatch(ctx, b)
		t.tx = results.Tx()
		return results.Close()
	})
	if err == nil {
		return t, nil
	}
	if t.conn != nil && !t.alive() {
		err = errors.Join(errBroken, err)
	}
	t.Close(ctx)
	return nil, err
}

// Marked reports whether the event is this transaction's to process.
func (t *Tx) Marked() bool { return !t.session.StartedAt.IsZero() }

// Strict reports whether the transaction is stricter than read committed, so that its last
// statement does not see rows that others have committed since its first one.
func (t *Tx) Strict() bool { return t.session.Strict }

// Spoiled reports whether the handler may have left its session with other settings, or
// with something else that others would meet there. Its connection is not used again.
func (t *Tx) Spoiled() bool {
	t.handler.mu.Lock() // a goroutine that the handler has left behind may still be at it
	defer t.handler.mu.Unlock()
	return t.handler.raw || t.handler.effects&lasts != 0
}

// protect is [Protect] for calls that may reach code of the application: encoding the
// handler's arguments, and the pool's hooks. A panic leaves the connection in no state
// to go on with.
func (t *Tx) protect(f func() error) (err error) {
	returned := false
	panicked := Protect(func() error {
		err = f()
		probe(err)
		returned = true
		return nil
	})
	if returned {
		return err
	}
	t.drop()
	return panicked
}

// Close rolls back uncommitted work and returns the connection to the pool.
func (t *Tx) Close(ctx context.Context) {
	if t.conn == nil {
		return
	}
	if t.tx != nil && !t.ended && t.alive() {
		ctx, cancel := Finish(ctx)
		defer cancel()
		_ = t.protect(func() error { return t.tx.Rollback(ctx) }) // pgx closes a connection that cannot roll back
	}
	if t.conn == nil {
		return
	}
	if !t.alive() {
		t.drop()
		if !t.ended {
			t.terminate(ctx)
		}
		return
	}
	if t.Spoiled() {
		t.drop()
		return
	}
	t.conn.Release()
	t.conn = nil
}

// drop takes the connection out of the pool, and closes it.
func (t *Tx) drop() {
	closeNow(t.conn)
	t.conn = nil
}

func (t *Tx) alive() bool { return !t.conn.Conn().IsClosed() }

// terminate ends the rest of the transaction in Postgres, where a backend
// holds its locks until it notices that its client is gone: after hours, by default. What asks next for
// the event's row would wait for it. The first tries may meet connections that a network has
// forgotten, too: after each, the pool replaces them. Those that [Finish] leaves no time for go on in the background.
func (t *Tx) terminate(ctx context.Context) {
	if !t.Marked() {
		return
	}
	const sql = `select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and xact_start = $2`
	ended := inBackground(ctx, t.pool, sql, t.session.PID, t.session.StartedAt)
	ctx, cancel := Finish(ctx)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
