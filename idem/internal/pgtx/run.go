package pgtx

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run calls work with the transaction, guarded: work cannot end it. An error is
// a [*WorkError]. When work does not return in time, Run does so without it;
// work's connection is taken out of the pool and closed. So it is when work has
// returned, and left a goroutine behind that is about to use it.
func (t *Tx) Run(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	tx := guard(t.tx, t.handler)
	err, returned := await(ctx, Start(func() error { return work(ctx, tx) }))
	inUse := t.handler.end()
	switch {
	case !returned:
		err = ErrTimedOut
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
	return &WorkError{err}
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

// verdict is what the state in which the handler left the connection means.
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
// for a handler that had the connection itself, or had something executed whose text was
// not looked at. Prepared statements are looked at now: what is none was executed as it
// is, if it is SQL; else it is what a pooler has under another name.
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
	closeNow(t.conn)
	t.conn = nil
	t.terminate(ctx)
}
