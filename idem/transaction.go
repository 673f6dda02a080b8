package idem

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// transaction is an attempt's connection, from BEGIN to its return to the pool.
type transaction struct {
	conn   *pgxpool.Conn // nil once returned, or left to a handler that hangs
	tx     pgx.Tx
	marked bool // the event is this transaction's to work on
	seen   bool // the event's row was there before: retrying, unhandled or failed
}

// begin starts a transaction and marks the event as done in it, in one round
// trip. If that changes nothing the event was done before; if another
// transaction is doing so, begin fails with errTwin after LockWait.
func (p *Processor) begin(ctx context.Context, e Event) (*transaction, error) {
	// After a restart of Postgres all of the pool's connections may be dead.
	// Nothing is committed yet, so it is safe to go on with the next one.
	for dead := int32(0); ; dead++ {
		conn, err := p.pool.Acquire(ctx)
		if err != nil {
			return nil, explain(err)
		}
		t := &transaction{conn: conn}
		err = t.mark(ctx, e, p)
		if err == nil {
			return t, nil
		}
		broken := conn.Conn().IsClosed() && ctx.Err() == nil
		t.release()
		if !broken || dead > p.pool.Stat().MaxConns() {
			return nil, explain(err)
		}
	}
}

func (t *transaction) mark(ctx context.Context, e Event, p *Processor) error {
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	b.Queue(lockWait(p.LockWait))
	b.Queue(markDone, e.Source, e.Scope, e.ID, e.Type, e.Key, nullTime(e.OccurredAt)).Query(t.scanMark)
	b.Queue(`set local lock_timeout to default`)
	if p.KeepPayloads {
		b.Queue(keepPayload, e.Source, e.Scope, e.ID, e.Payload)
	}
	results := t.conn.SendBatch(ctx, b)
	t.tx = results.Tx()
	return results.Close()
}

func (t *transaction) scanMark(rows pgx.Rows) error {
	for rows.Next() {
		t.marked = true
		if err := rows.Scan(&t.seen); err != nil {
			return err
		}
	}
	return rows.Err()
}

func lockWait(d time.Duration) string {
	return "set local lock_timeout = " + strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

// work runs the handler and waits for it, but not for ever: one that ignores
// the end of its context loses the connection, and with it the transaction.
func (t *transaction) work(ctx context.Context, work Work) error {
	done := make(chan error, 1)
	go func() {
		err := errInterrupted
		defer func() { done <- err }()
		err = protect(func() error { return work(ctx, ownedTx{t.tx}) })
	}()
	select {
	case err := <-done:
		return t.verdict(err)
	case <-ctx.Done():
	}
	grace := time.NewTimer(handlerGrace)
	defer grace.Stop()
	select {
	case err := <-done:
		return t.verdict(err)
	case <-grace.C:
		t.abandon()
		return &workError{errHung}
	}
}

// protect turns a panic of application code into an error with its stack.
func protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

// verdict is what the handler's result and the state it left the connection in
// mean together.
func (t *transaction) verdict(err error) error {
	switch conn := t.conn.Conn(); {
	case err != nil:
	case conn.IsClosed():
		err = errLost
	case conn.PgConn().TxStatus() == 'I':
		err = errEnded
	case conn.PgConn().TxStatus() == 'E':
		err = errAborted
	default:
		return nil
	}
	return &workError{err}
}

// commit returns Unknown when the connection was lost before the answer came.
func (t *transaction) commit(ctx context.Context) (Outcome, error) {
	ctx, cancel := finishing(ctx)
	defer cancel()
	err := t.tx.Commit(ctx)
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return Handled, nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return Failed, &workError{errAborted}
	case errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR":
		return Failed, &workError{err} // a deferred constraint, say: the answer is no
	}
	return Unknown, fmt.Errorf("the answer to COMMIT was lost: the next delivery finds out: %w", err)
}

// release rolls back what is not committed and returns the connection.
func (t *transaction) release() {
	if t.conn == nil {
		return
	}
	if t.tx != nil && !t.conn.Conn().IsClosed() {
		ctx, cancel := finishing(context.Background())
		defer cancel()
		_ = t.tx.Rollback(ctx) // no-op once committed; what cannot roll back is closed, which does
	}
	t.conn.Release()
	t.conn = nil
}

// abandon leaves the connection to a handler that does not return: the pool
// gets a new one, and Postgres is told to stop what the handler waits for.
func (t *transaction) abandon() {
	conn := t.conn.Hijack().PgConn()
	t.conn = nil
	go func() {
		ctx, cancel := finishing(context.Background())
		defer cancel()
		_ = conn.CancelRequest(ctx) // a backend that waits does not notice a closed socket
		_ = conn.Conn().Close()
	}()
}
