package pgtx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Commit executes the statements that the handler has declared, and then ours, and commits, in one round
// trip. Both batches may be empty. The error is a [*WorkError] if Postgres refused, or if the declared
// statements could not be encoded in time. The error is [ErrUnknown], and the transaction may be committed or
// not, if the answer did not come, or may not count because the wait for the synchronous replica was broken
// off.
func (t *Tx) Commit(limit context.Context, declared, ours *pgx.Batch) error {
	ctx, cancel := Finish(limit)
	defer cancel()
	last, slow, err := t.join(ctx, limit, declared, ours)
	if err != nil {
		return err
	}
	t.ended = true
	conn, tx := t.conn.Conn(), t.tx
	commit := func(sent func()) error {
		return reliably(ctx, conn, func() error { return commit(ctx, conn, tx, last, sent) })
	}
	if slow {
		err = t.protectSlow(limit, commit)
	} else {
		err = t.protect(func() error { return commit(func() {}) })
	}
	if t.conn == nil { // the application's code panicked or took too long
		return t.failed(err)
	}
	var refused *pgconn.PgError
	var unsent pgx.ErrPreprocessingBatch
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return t.failed(ErrAborted)
	case errors.As(err, &unsent), t.alive() && t.conn.Conn().PgConn().TxStatus() != 'I': // COMMIT was not reached
		t.ended = false
		return t.failed(err)
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR": // a deferred constraint, say
		return t.failed(err)
	}
	if !t.alive() {
		t.drop()
		t.terminate(ctx)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

func commit(ctx context.Context, conn *pgx.Conn, tx pgx.Tx, last *pgx.Batch, sent func()) error {
	if last.Len() == 0 {
		return tx.Commit(ctx)
	}
	rolledBack := false
	last.Queue("commit").Exec(func(tag pgconn.CommandTag) error { rolledBack = tag.String() == "ROLLBACK"; return nil })
	results := conn.SendBatch(ctx, last)
	sent()
	err := results.Close()
	if err == nil && rolledBack {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// Check executes both batches as Commit would, with the checks that Postgres makes at COMMIT, and does not
// commit.
func (t *Tx) Check(ctx context.Context, declared, ours *pgx.Batch) error {
	last, _, err := t.join(ctx, ctx, declared, ours)
	if err != nil {
		return err
	}
	last.Queue("set constraints all immediate")
	return t.execute(ctx, ctx, last)
}

// join returns the statements to execute with COMMIT: both batches, unless the declared one must be executed
// first. slow reports that declared statements travel with COMMIT, so that encoding them may run the
// handler's code: see protectSlow. Declared statements are executed first if one of them may end the
// transaction, since COMMIT would then report success, or if the handler may have set another search path or
// role, since our statements would then not find their tables.
func (t *Tx) join(ctx, limit context.Context, declared, ours *pgx.Batch) (last *pgx.Batch, slow bool, err error) {
	slow = declared.Len() > 0
	unseen := slices.ContainsFunc(declared.QueuedQueries, isUnseen)
	t.handler.note(declared.QueuedQueries)
	moved := t.Marked() && (unseen || t.handler.effect >= moves)
	if moved {
		t.restore(declared)
	}
	if unseen || moved && ours.Len() > 0 {
		err = t.execute(ctx, limit, declared)
		declared, slow = &pgx.Batch{}, false
	}
	declared.QueuedQueries = append(declared.QueuedQueries, ours.QueuedQueries...)
	return declared, slow, err
}

// restore puts back the settings that this event's commit and the next event on the connection depend on: the
// search path, since another schema may have tables of its own, the role, and the wait for the disk and the
// replica.
func (t *Tx) restore(b *pgx.Batch) {
	const restore = `
select case when current_setting('role') <> $1 then set_config('role', $1, false) end,
	case when current_setting('search_path') <> $2 then set_config('search_path', $2, false) end,
	case when current_setting('synchronous_commit') <> $3 then set_config('synchronous_commit', $3, true) end`
	b.Queue(restore, t.session.Role, t.session.SearchPath, t.session.SynchronousCommit)
}

// execute executes b before COMMIT. It is an error if b ends the transaction.
func (t *Tx) execute(ctx, limit context.Context, b *pgx.Batch) error {
	tx := t.tx
	err := t.protectSlow(limit, func(sent func()) error {
		results := tx.SendBatch(ctx, b)
		sent()
		return results.Close()
	})
	if err == nil {
		err = t.verdict(ctx)
	}
	if err != nil {
		return t.failed(err)
	}
	return nil
}

// protectSlow is protect for a function that sends declared statements: encoding their arguments may run the
// application's code for any time. f calls sent when the statements are sent. If f has not called sent when
// limit and then grace are over, the connection is closed: statements that f sends later do not arrive.
func (t *Tx) protectSlow(limit context.Context, f func(sent func()) error) error {
	var returned atomic.Bool
	encoded := make(chan struct{})
	result := Start(func() error {
		err := f(func() { close(encoded) })
		probe(err)
		returned.Store(true)
		return err
	})
	over, sent, late := limit.Done(), (<-chan struct{})(encoded), (<-chan time.Time)(nil)
	for {
		select {
		case err := <-result:
			if !returned.Load() {
				t.drop()
			}
			return err
		case <-sent: // Postgres has the time that f's context gives
			over, sent, late = nil, nil, nil
		case <-over:
			timer := time.NewTimer(grace)
			defer timer.Stop()
			over, late = nil, timer.C
		case <-late:
			t.abandon(limit)
			return ErrTimedOut
		}
	}
}

// grace is the time that a handler has to return once its context has ended.
const grace = 500 * time.Millisecond

// finishing is the time that COMMIT, ROLLBACK and the records after them may
// take, all together, when the time of the attempt is over.
const finishing = time.Second

// Finish returns a context for work that must be finished although ctx is over, or nearly. All steps of that
// work share one deadline, grace and finishing after the deadline of ctx.
func Finish(ctx context.Context) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled), end.IsZero(): // ctx ended early: the workers are being stopped
		end = time.Now()
	case time.Until(end) > finishing:
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(grace+finishing))
}

// WatchCommits has the connections of c note when a commit's wait for the synchronous
// replica was broken off. Hooks that c has are called as before.
func WatchCommits(c *pgxpool.Config) {
	connected, noticed := c.ConnConfig.AfterConnect, c.ConnConfig.OnNotice
	c.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[brokenOff] = new(atomic.Bool)
		if connected == nil {
			return nil
		}
		return connected(ctx, conn)
	}
	c.ConnConfig.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		// The message may be in any language.
		if note, ok := noteOf(conn); ok && n.Code == "01000" && n.Routine == "SyncRepWaitForLSN" {
			note.Store(true)
		}
		if noticed != nil {
			noticed(conn, n)
		}
	}
}

// Watched reports whether conn is of a pool that was given to [WatchCommits].
func Watched(conn *pgx.Conn) bool {
	_, ok := noteOf(conn.PgConn())
	return ok
}

// reliably calls f, which has Postgres commit, and returns an error if f's success proves nothing. ctx is the
// context of f's statements.
func reliably(ctx context.Context, conn *pgx.Conn, f func() error) error {
	note, ok := noteOf(conn.PgConn())
	if ok {
		note.Store(false) // an earlier statement may have set it
	}
	if err := f(); err != nil {
		return err
	}
	if ok && note.Load() {
		return errBrokenOff
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the answer came late, and a canceled commit looks the same: %w", err)
	}
	return nil
}

// errBrokenOff is the error of a commit that Postgres has reported and that may be lost.
//
// When a cancel breaks off the wait of a commit for the synchronous replica, Postgres warns, and reports
// success, though only the primary has the commit. pgx sends a cancel when a context ends, if the pool is
// configured so: hence an answer that came after its context had ended proves nothing. A cancel by another
// session shows only in the warning, which [WatchCommits] has connections note.
var errBrokenOff = errors.New("its wait for the synchronous replica was canceled: only the primary may have it")

// brokenOff is the key of the note in a connection's custom data, an *atomic.Bool.
const brokenOff = "github.com/paghooks/paghooks/idem: a wait for the synchronous replica was canceled"

func noteOf(conn *pgconn.PgConn) (note *atomic.Bool, ok bool) {
	note, ok = conn.CustomData()[brokenOff].(*atomic.Bool)
	return note, ok
}
