package idem

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// transaction is an attempt's connection, from BEGIN to its return to the pool.
type transaction struct {
	ctx    context.Context // the job's
	conn   *pgxpool.Conn   // nil once returned, or left to a handler that hangs
	tx     pgx.Tx
	after  *pgx.Batch // what ends the transaction before it, on the same connection; nil if there is none
	begun  bool       // BEGIN was answered, and so was what ends the one before it
	marked bool       // the event is this transaction's to work on
	ended  bool       // COMMIT was sent
	hung   sync.WaitGroup
}

// begin starts a transaction and marks the event as done in it, in one round
// trip. If that changes nothing the event was done before; if another
// transaction is doing so, begin fails with errTwin.
func (p *Processor) begin(ctx context.Context, within time.Duration, mark func(*transaction) error) (*transaction, error) {
	// After a restart of Postgres all of the pool's connections may be dead.
	// Nothing is committed yet, so it is safe to go on with the next one.
	for dead := int32(0); ; dead++ {
		conn, err := p.acquire(ctx, within)
		if err != nil {
			return nil, explain(err)
		}
		t := &transaction{ctx: ctx, conn: conn}
		if err = mark(t); err == nil {
			return t, nil
		}
		broken := conn.Conn().IsClosed() && ctx.Err() == nil
		t.release()
		if !broken || dead > p.pool.Stat().MaxConns() {
			return nil, explain(err)
		}
	}
}

func (p *Processor) acquire(ctx context.Context, within time.Duration) (*pgxpool.Conn, error) {
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	return p.pool.Acquire(ctx)
}

// send begins the transaction with the statements of queue behind BEGIN, in one
// round trip; or with the end of the transaction before it.
func (t *transaction) send(queue func(*pgx.Batch)) pgx.BatchResults {
	b, before := &pgx.Batch{}, 0
	if t.after == nil {
		b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	} else {
		b.BeginTx(pgx.TxOptions{BeginQuery: "commit and chain"})
		before = t.after.Len()
		b.QueuedQueries = append(t.after.QueuedQueries, b.QueuedQueries...)
	}
	queue(b)
	results := t.conn.SendBatch(t.ctx, b)
	t.tx = results.Tx()
	for range before {
		_, _ = results.Exec() // its error is that of all that follow, and Close's
	}
	tag, err := results.Exec()
	t.begun = err == nil && tag.String() != "ROLLBACK" // which is how COMMIT answers of a transaction that is lost
	return results
}

// markDelivered marks an event that a provider delivers.
func (t *transaction) markDelivered(e Event, keepPayload bool) error {
	key := rowKey(e)
	err := t.marks(t.send(func(b *pgx.Batch) {
		b.Queue(markNew, key, e.Type, e.Key)
		if keepPayload {
			b.Queue(insertPayload, key, nullTime(e.OccurredAt), e.Payload)
		}
	}), 1)
	if err != nil || t.marked {
		return err
	}
	return t.markKept(key, keepPayload)
}

// markKept looks at an event that is stored: it may not be done.
func (t *transaction) markKept(key string, keepPayload bool) error {
	b := &pgx.Batch{}
	b.Queue(markKept, key)
	if keepPayload {
		b.Queue(settlePayload, key)
	} else {
		b.Queue(deletePayload, key)
	}
	return t.marks(t.conn.SendBatch(t.ctx, b), 1)
}

// marks reads whether the next so many statements of a batch changed a row each,
// and ends the batch.
func (t *transaction) marks(results pgx.BatchResults, statements int) error {
	t.marked = true
	for range statements {
		tag, _ := results.Exec() // its error is Close's, too
		t.marked = t.marked && tag.RowsAffected() == 1
	}
	return results.Close()
}

// work runs the handler. One that ignores the end of its context loses the
// connection, and with it the transaction; hung is called while it still runs.
func (t *transaction) work(ctx context.Context, work Work, hung func()) (err error) {
	conn := t.conn
	end, _ := ctx.Deadline()
	t.hung.Add(1)
	watchdog := time.AfterFunc(time.Until(end)+handlerGrace, func() {
		defer t.hung.Done()
		abandon(ctx, conn)
		hung()
	})
	defer func() {
		if !watchdog.Stop() {
			t.hung.Wait()
			t.conn, err = nil, errHung
			return
		}
		err = t.verdict(err)
	}()
	tx := lend(t.tx)
	defer tx.over.Store(true)
	return protect(func() error { return work(ctx, tx) })
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
	case conn.PgConn().IsBusy():
		err = errBusy
	case conn.PgConn().TxStatus() == 'I':
		err = errEnded
	case conn.PgConn().TxStatus() == 'E':
		err = errAborted
	default:
		return nil
	}
	return &workError{err}
}

// commit executes what the handler queued and commits, in one round trip, and
// begins what is next in the same. It returns Unknown when the connection was
// lost before the answer came.
func (t *transaction) commit(queued *pgx.Batch, next *job) (Outcome, error) {
	t.ended = true
	err := t.end(queued, next)
	var refused *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch
	switch {
	case err == nil:
		return Done, nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return Retrying, &workError{errAborted}
	case errors.As(err, &unsent), t.alive() && t.conn.Conn().PgConn().TxStatus() != 'I': // it did not come to COMMIT
		t.ended = false
		return Retrying, &workError{err}
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR": // a deferred constraint, say
		return Retrying, &workError{err}
	}
	return Unknown, fmt.Errorf("the answer to COMMIT was lost: the next delivery finds out: %w", err)
}

func (t *transaction) end(queued *pgx.Batch, next *job) error {
	ctx, cancel := finishing(t.ctx)
	defer cancel()
	switch {
	case next != nil:
		return t.chain(queued, next)
	case queued == nil:
		return t.tx.Commit(ctx)
	}
	queued.Queue("commit")
	return t.conn.SendBatch(ctx, queued).Close()
}

// chain commits and begins what is next on the same connection. That it cannot
// be marked is no error here: it begins anew.
func (t *transaction) chain(queued *pgx.Batch, next *job) error {
	if queued == nil {
		queued = &pgx.Batch{}
	}
	following := &transaction{ctx: next.ctx, conn: t.conn, after: queued}
	err := next.mark(following)
	switch {
	case following.begun:
		t.conn = nil
	case err == nil:
		return pgx.ErrTxCommitRollback
	default:
		return err
	}
	if err != nil {
		following.release()
		return nil
	}
	next.begun = following
	return nil
}

func (t *transaction) alive() bool { return !t.conn.Conn().IsClosed() }

// release rolls back what is not committed and returns the connection.
func (t *transaction) release() {
	if t.conn == nil {
		return
	}
	if t.tx != nil && !t.ended && t.alive() {
		ctx, cancel := finishing(t.ctx)
		defer cancel()
		_ = t.tx.Rollback(ctx) // what cannot roll back is closed by pgx, and so rolled back
	}
	t.conn.Release()
	t.conn = nil
}

// abandon leaves a connection to a handler that does not return: the pool gets
// a new one, and Postgres is told, without waiting for it, to stop what the
// handler waits for.
func abandon(ctx context.Context, pooled *pgxpool.Conn) {
	conn := pooled.Hijack().PgConn()
	go func() {
		ctx, cancel := finishing(ctx)
		defer cancel()
		_ = conn.CancelRequest(ctx) // a backend that waits does not notice a closed socket
		_ = conn.Conn().Close()
	}()
}
