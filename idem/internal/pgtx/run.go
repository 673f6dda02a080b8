package pgtx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run calls work with the transaction, guarded: work cannot end it. An error is
// a [*WorkError]. When work does not return in time, Run does so without it;
// work's connection is taken out of the pool and closed. So it is when work has
// returned, and left a goroutine behind that is about to use it.
func (t *Tx) Run(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	tx, start := guard(t.tx, t.handler), time.Now()
	err, returned := await(ctx, Start(func() error { return work(ctx, tx) }))
	inUse := t.handler.end()
	switch {
	case !returned:
		err = fmt.Errorf("%w: after %s it was left behind, because what it waits for does not end with its context", ErrTimedOut, time.Since(start).Round(time.Millisecond))
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		err = fmt.Errorf("the time of the handler, Timeout, was over after %s: see what it waited for, a lock or a slow query for example, or raise Timeout: %w",
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

// verdict returns the error for the state in which the handler left the connection.
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

// checkSame finds out whether the transaction is still the one that marked the event,
// for a handler that had the connection itself, or had a statement executed with a text that was
// not looked at. Prepared statements are looked at now: a text that is none was executed as it
// is, if it is SQL; else it is one that a pooler has under another name.
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
			t.handler.effects |= effectOf(prepared[i][1])
		case !isCommand(l.next()):
			t.handler.effects |= lasts | moves
		}
	}
	t.handler.names = nil
	if !startedAt.Equal(t.session.StartedAt) {
		return ErrEnded
	}
	return nil
}

// abandon closes the connection under a handler that does not return, or a goroutine that
// it has left behind. The pool makes a new one.
func (t *Tx) abandon(ctx context.Context) {
	t.drop()
	t.terminate(ctx)
}
