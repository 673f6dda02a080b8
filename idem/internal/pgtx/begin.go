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

	Strict bool // stricter than read committed: it does not see what others commit meanwhile
}

// Tx is the transaction of one attempt.
type Tx struct {
	pool    *pgxpool.Pool
	conn    *pgxpool.Conn // nil once it is back in the pool, or closed
	tx      pgx.Tx
	session Session
	ended   bool // COMMIT or ROLLBACK was sent

	handler *state // what the handler did, once it runs
}

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

// Marked tells whether the event is this transaction's to process.
func (t *Tx) Marked() bool { return !t.session.StartedAt.IsZero() }

// Strict reports whether the transaction is stricter than read committed, so that its last
// statement does not see what others have committed since its first one.
func (t *Tx) Strict() bool { return t.session.Strict }
