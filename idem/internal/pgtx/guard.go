package pgtx

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// guardedTx is the transaction that a handler gets: pgx's own, which the handler cannot end. Statements that
// would end the transaction are refused before they are sent: afterwards the event's mark may be committed,
// or gone. The guardedTx is closed once the handler has returned.
type guardedTx struct{ savepoint }

// state is shared by a guarded transaction and its savepoints.
type state struct {
	mu      sync.Mutex
	over    bool      // the handler has returned
	running int       // calls of methods that have not returned
	effect  effect    // of the executed statements
	names   []string  // of prepared statements that were executed and are still to be looked at
	unseen  bool      // a rewriter has written an executed statement
	raw     bool      // the handler used the connection itself, or had pgx's large objects on it
	lent    bool      // see Borrow
	seen    *pgx.Conn // that the handler has been given, and that is watched; nil for none
}

// enter notes the begin of a handler's call that executes statements; leave notes its end. The error says why
// the call is refused: the transaction is over, or a statement would end it.
func (s *state) enter(statements ...*pgx.QueuedQuery) error {
	var found effect
	for _, q := range statements {
		found = max(found, effectOf(q.SQL))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return pgx.ErrTxClosed
	case found == ends:
		return ErrOwned
	}
	s.running++
	s.noteLocked(found, statements)
	return nil
}

func (s *state) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// note notes statements that the handler has declared, which are executed once it has returned.
func (s *state) note(statements []*pgx.QueuedQuery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range statements {
		s.noteLocked(effectOf(q.SQL), []*pgx.QueuedQuery{q})
	}
}

func (s *state) noteLocked(found effect, statements []*pgx.QueuedQuery) {
	s.effect = max(s.effect, found)
	for _, q := range statements {
		if mayBeName(q.SQL) {
			s.names = append(s.names, strings.Clone(q.SQL))
		}
		for i, arg := range q.Arguments {
			if r, ok := rewriterOf(arg); ok {
				s.unseen = true
				q.Arguments = slices.Clone(q.Arguments)
				q.Arguments[i] = noted{r, s}
			}
		}
	}
}

// end ends the handler's use of the transaction. inUse reports whether one of the handler's calls has not
// returned: it may still be encoding arguments, and would then send its statement in whatever transaction the
// connection has.
func (s *state) end() (inUse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.running > 0
}

// giveAway notes that the handler uses the connection itself, unless the handler has returned.
func (s *state) giveAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveAwayLocked()
}

func (s *state) giveAwayLocked() {
	if !s.over {
		s.raw, s.effect = true, lasts
	}
}

// watch notes from now on whether anything is sent on conn beside the guarded methods. A handler, or a library in it,
// may ask the connection for its settings or its types, which sends nothing.
func (s *state) watch(conn *pgx.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over && s.seen == nil && !conn.IsClosed() {
		s.seen = conn
		conn.PgConn().Frontend().Trace(watcher{s}, pgproto3.TracerOptions{SuppressTimestamps: true})
	}
}

// unwatch ends watch, once nothing of the handler's uses the connection any more.
func (s *state) unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil {
		s.seen.PgConn().Frontend().Untrace()
	}
}

// watcher gets the messages of a connection, as lines.
type watcher struct{ *state }

func (w watcher) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == 0 && bytes.HasPrefix(line, []byte("F\t")) { // to Postgres, and by no guarded method
		w.giveAwayLocked()
	}
	return len(line), nil
}

// Borrow lends a handler's transaction, or a savepoint in it, to one caller at a time. ok is false while
// another caller has not called giveBack. For the transaction of another module ok is always true.
func Borrow(tx pgx.Tx) (giveBack func(), ok bool) {
	var s *state
	switch tx := tx.(type) {
	case guardedTx:
		s = tx.state
	case savepoint:
		s = tx.state
	default:
		return func() {}, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent {
		return nil, false
	}
	s.lent = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lent = false
	}, true
}

// noted is a rewriter whose statement is noted when it is written.
type noted struct {
	pgx.QueryRewriter
	state *state
}

func (n noted) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	sql, args, err := n.QueryRewriter.RewriteQuery(ctx, conn, sql, args)
	n.state.note([]*pgx.QueuedQuery{{SQL: sql}})
	return sql, args, err
}

// rewriterOf returns arg as a rewriter, if it may write another statement.
func rewriterOf(arg any) (r pgx.QueryRewriter, ok bool) {
	switch arg.(type) {
	case pgx.NamedArgs, pgx.StrictNamedArgs, noted: // they only change names, or are noted
		return nil, false
	}
	r, ok = arg.(pgx.QueryRewriter)
	return r, ok
}

// isUnseen reports whether q may execute a statement that is not its text.
func isUnseen(q *pgx.QueuedQuery) bool {
	return mayBeName(q.SQL) || slices.ContainsFunc(q.Arguments, func(arg any) bool { _, ok := rewriterOf(arg); return ok })
}

func guard(tx pgx.Tx, s *state) guardedTx { return guardedTx{savepoint{tx, s}} }

func (guardedTx) Commit(context.Context) error { return ErrOwned }

func (guardedTx) Rollback(context.Context) error { return ErrOwned }

// savepoint is a guarded transaction, or a savepoint in one, which is the
// handler's to end.
type savepoint struct {
	tx    pgx.Tx
	state *state
}

// failed returns results that return an error from every method, as pgx does.
func failed(err error) pgx.BatchResults { return pgx.FailedBatchResults(&pgx.Batch{}, err) }

func (s savepoint) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := s.state.enter(); err != nil {
		return nil, err
	}
	defer s.state.leave()
	tx, err := s.tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return savepoint{tx, s.state}, nil
}

func (s savepoint) Commit(ctx context.Context) error {
	if err := s.state.enter(); err != nil {
		return err
	}
	defer s.state.leave()
	return s.tx.Commit(ctx)
}

func (s savepoint) Rollback(ctx context.Context) error {
	if err := s.state.enter(); err != nil {
		return err
	}
	defer s.state.leave()
	return s.tx.Rollback(ctx)
}

// Conn returns the connection itself. It is closed in the end if anything was sent on it, which is not guarded.
func (s savepoint) Conn() *pgx.Conn {
	conn := s.tx.Conn()
	s.state.watch(conn)
	return conn
}

// LargeObjects returns large objects that work on the connection itself, which is closed in the end.
func (s savepoint) LargeObjects() pgx.LargeObjects {
	s.state.giveAway()
	return s.tx.LargeObjects()
}

func (s savepoint) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := s.state.enter(); err != nil {
		return 0, err
	}
	defer s.state.leave()
	return s.tx.CopyFrom(ctx, table, columns, rows)
}

func (s savepoint) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := s.state.enter(b.QueuedQueries...); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	defer s.state.leave()
	return s.tx.SendBatch(ctx, b)
}

func (s savepoint) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if EndsTransaction(sql) {
		return nil, ErrOwned
	}
	if err := s.state.enter(); err != nil {
		return nil, err
	}
	defer s.state.leave()
	return s.tx.Prepare(ctx, name, sql)
}

func (s savepoint) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	q := &pgx.QueuedQuery{SQL: sql, Arguments: args}
	if err := s.state.enter(q); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer s.state.leave()
	return s.tx.Exec(ctx, sql, q.Arguments...)
}

func (s savepoint) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	q := &pgx.QueuedQuery{SQL: sql, Arguments: args}
	if err := s.state.enter(q); err != nil {
		return failed(err).Query()
	}
	defer s.state.leave()
	return s.tx.Query(ctx, sql, q.Arguments...)
}

func (s savepoint) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	q := &pgx.QueuedQuery{SQL: sql, Arguments: args}
	if err := s.state.enter(q); err != nil {
		return failed(err).QueryRow()
	}
	defer s.state.leave()
	return s.tx.QueryRow(ctx, sql, q.Arguments...)
}
