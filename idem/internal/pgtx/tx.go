// Package pgtx is the transaction of one attempt: [Begin] marks the event in
// the round trip of BEGIN, [Tx.Run] runs a handler with the transaction,
// [Tx.Commit] ends it, and [Tx.Close] undoes uncommitted work.
//
// A handler may do anything: fail, panic, hang, exit its goroutine, end the
// transaction with SQL, lose the connection. In each case, each method
// returns in time, with an error that names the fate of the transaction.
package pgtx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is the transaction of one attempt.
type Tx struct {
	pool    *pgxpool.Pool
	conn    *pgxpool.Conn // nil once the connection is back in the pool, or closed
	tx      pgx.Tx
	backend backend
	session Session
	ended   bool // COMMIT or ROLLBACK was sent

	handler *state // the handler's use of the transaction
}

// Session identifies a transaction to Postgres. StartedAt is its now(); it is
// zero while the event is not marked.
type Session struct {
	PID       uint32
	StartedAt time.Time

	SearchPath, Role, SynchronousCommit string // before the handler changes them

	Strict bool // stricter than read committed: the transaction does not see rows that others commit meanwhile
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
		if !errors.Is(err, errBroken) || reachable.Err() != nil || broken > pool.Stat().MaxConns() {
			return nil, err
		}
	}
}

var errBroken = errors.New("the connection is broken")

func begin(ctx context.Context, pool *pgxpool.Pool, mark func(*pgx.Batch, *Session)) (*Tx, error) {
	t := &Tx{pool: pool, handler: new(state)}
	err := Protect(func() (err error) { // hooks of the pool are the application's
		if t.conn, err = acquire(ctx, pool); err != nil {
			return err
		}
		isNew(t.conn)
		t.backend = backendOf(t.conn)
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
	if leadsToReplica(t.conn, err) {
		t.drop()
		return nil, err
	}
	if t.conn != nil && !t.alive() {
		err = errors.Join(errBroken, err)
	}
	t.Close(ctx)
	replaceAfter(pool, err)
	return nil, err
}

// Marked reports whether the event is this transaction's to process.
func (t *Tx) Marked() bool { return !t.session.StartedAt.IsZero() }

// StartedAt returns the time of the transaction's begin, by the database's clock; zero if the event is not marked.
func (t *Tx) StartedAt() time.Time { return t.session.StartedAt }

// Strict reports whether the transaction is stricter than read committed, so that its last
// statement does not see rows that others have committed since its first one.
func (t *Tx) Strict() bool { return t.session.Strict }

// Run calls work with the transaction, guarded: work cannot end it. An error is a [*WorkError]. If work does
// not return in time, Run returns without it, and takes work's connection out of the pool and closes it. Run
// does the same if work has returned and left a goroutine behind that is about to use the connection.
func (t *Tx) Run(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	tx, start := guard(t.tx, t.handler), time.Now()
	err, returned := await(ctx, Start(func() error { return work(ctx, tx) }))
	inUse := t.handler.end()
	if returned && !inUse {
		t.handler.unwatch()
	}
	switch {
	case !returned:
		err = fmt.Errorf("%w: after %s it was left behind, because what it waits for does not end with its context", ErrTimedOut, time.Since(start).Round(time.Millisecond))
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		err = fmt.Errorf("the time of the handler was over after %s: see what it waited for, a lock or a slow query for example, or raise Timeout (in a first try AnswerWithin): %w",
			time.Since(start).Round(time.Millisecond), err)
	case err == nil && inUse:
		err = ErrBusy
	case err == nil:
		err = t.verdict(ctx)
	}
	if !returned || inUse {
		t.abandon(ctx)
	}
	if err == nil {
		return nil
	}
	return t.failed(err)
}

// await waits for a result until ctx has ended, and for grace after that.
func await(ctx context.Context, result <-chan error) (err error, returned bool) {
	select {
	case err := <-result:
		return err, true
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-result:
		return err, true
	case <-late.C:
		return nil, false
	}
}

// verdict returns the error for the state of the connection after the handler has returned.
func (t *Tx) verdict(ctx context.Context) error {
	conn := t.conn.Conn()
	switch {
	case conn.IsClosed():
		return ErrLost
	case conn.PgConn().IsBusy():
		return ErrBusy
	case conn.PgConn().TxStatus() == 'I':
		return ErrEnded
	case conn.PgConn().TxStatus() == 'E':
		return ErrAborted
	case t.Marked() && (t.handler.raw || t.handler.unseen || len(t.handler.names) > 0):
		return t.checkSame(ctx)
	}
	return nil
}

// checkSame returns an error if the transaction is not the one that marked the event any more. It is called
// if the handler had the connection itself, or executed a statement whose SQL is not known. The SQL of
// prepared statements is looked up now: a name that is not found is SQL that was executed as it is, or else a
// statement that a pooler has under another name.
func (t *Tx) checkSame(ctx context.Context) error {
	const look = `select now(), array(select array[name, statement] from pg_prepared_statements where name = any($1::text[]))`
	var startedAt time.Time
	var prepared [][]string
	names := t.handler.names
	if err := t.conn.QueryRow(ctx, look, names).Scan(&startedAt, &prepared); err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(prepared, func(p []string) bool { return p[0] == name })
		switch l := (lexer{rest: name}); {
		case i >= 0:
			t.handler.effect = max(t.handler.effect, effectOf(prepared[i][1]))
		case !isCommand(l.next()):
			t.handler.effect = lasts
		}
	}
	t.handler.names = nil
	if !startedAt.Equal(t.session.StartedAt) {
		return ErrEnded
	}
	return nil
}

// abandon closes a connection that a handler, or a goroutine that it has left behind, may still use. The pool
// makes a new connection.
func (t *Tx) abandon(ctx context.Context) {
	t.drop()
	t.terminate(ctx)
}

// failed returns err as a failure of the handler's work.
func (t *Tx) failed(err error) error { return &WorkError{err, t.conn == nil || !t.alive()} }

// Rollback rolls back and then executes next, in one round trip.
func (t *Tx) Rollback(ctx context.Context, next func(*pgx.Batch)) error {
	ctx, cancel := Finish(ctx)
	defer cancel()
	b := &pgx.Batch{}
	b.Queue("rollback")
	next(b)
	err := t.protect(func() error {
		return reliably(ctx, t.conn.Conn(), func() error { return t.conn.SendBatch(ctx, b).Close() })
	})
	t.ended = err == nil
	return err
}

// Spoiled reports whether the handler may have left other settings in its session, which the next event would
// meet. The connection is not used again.
func (t *Tx) Spoiled() bool {
	t.handler.mu.Lock() // a goroutine that the handler has left behind may still be changing it
	defer t.handler.mu.Unlock()
	return t.handler.effect >= lasts
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

// protect is [Protect] for calls that may reach code of the application: encoding the handler's arguments,
// and the pool's hooks. After a panic the connection cannot be used any more.
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

// drop takes the connection out of the pool, and closes it.
func (t *Tx) drop() {
	closeNow(t.conn)
	t.conn = nil
}

func (t *Tx) alive() bool { return !t.conn.Conn().IsClosed() }

// terminate ends the rest of the transaction in Postgres, where a backend holds its locks until it notices
// that its client is gone: after hours, by default. The next attempt at the event would wait for its row. The
// first tries may get connections that a network has forgotten: after each try the pool replaces them. Tries
// that [Finish] leaves no time for go on in the background.
func (t *Tx) terminate(ctx context.Context) {
	if !t.Marked() { // or the answer was lost: Postgres may have marked the event
		endLeft(ctx, t.pool, t.backend)
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
