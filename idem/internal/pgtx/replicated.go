package pgtx

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A commit that waits for the synchronous replica is no failure to Postgres when a
// cancel breaks the wait off: it warns, and reports success, though only the primary
// has the commit. pgx sends a cancel when a context ends, if the pool is configured so:
// hence an answer that came after its context had ended proves nothing. A cancel of
// somebody else shows in the warning only, which [WatchCommits] has connections note.

// errBrokenOff is the error of a commit that Postgres has reported and that may be lost.
var errBrokenOff = errors.New("its wait for the synchronous replica was canceled: only the primary may have it")

// brokenOff is the key of the note in a connection's custom data, an *atomic.Bool.
const brokenOff = "github.com/paghooks/paghooks/idem: a wait for the synchronous replica was canceled"

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

func noteOf(conn *pgconn.PgConn) (note *atomic.Bool, ok bool) {
	note, ok = conn.CustomData()[brokenOff].(*atomic.Bool)
	return note, ok
}

// reliably calls f, which has Postgres commit, and returns an error if the success that
// it reports proves nothing. ctx is the context that f's statements have.
func reliably(ctx context.Context, conn *pgx.Conn, f func() error) error {
	note, ok := noteOf(conn.PgConn())
	if ok {
		note.Store(false) // of earlier statements
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
