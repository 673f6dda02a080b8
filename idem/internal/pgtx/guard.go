package pgtx

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// guardedTx is the transaction as a handler sees it: pgx's own, but for its end,
// which is not the handler's. Statements that would end it are refused before
// they are sent: afterwards is too late, because the event's mark may be
// committed by then, or gone. It is closed once the handler has returned.
type guardedTx struct{ savepoint }

// state is shared by a guarded transaction and its savepoints.
type state struct {
	over     atomic.Bool // the handler has returned
	bypassed atomic.Bool // the handler has executed, or may have, what was not looked at
	large    atomic.Bool // the handler has pgx's large objects, which only pgx can close
	moved    atomic.Bool // the handler may have set another search path or role
}

func guard(tx pgx.Tx) guardedTx { return guardedTx{savepoint{tx, new(state)}} }

func (guardedTx) Commit(context.Context) error   { return ErrOwned }
func (guardedTx) Rollback(context.Context) error { return ErrOwned }

// savepoint is a guarded transaction, or a savepoint in one, which is the
// handler's to end.
type savepoint struct {
	tx    pgx.Tx
	state *state
}

// refuse returns why statements must not be executed: the transaction is over,
// or one of them would end it.
func (s savepoint) refuse(statements ...string) error {
	if s.state.over.Load() {
		return pgx.ErrTxClosed
	}
	if slices.ContainsFunc(statements, EndsTransaction) {
		return ErrOwned
	}
	return nil
}

// note takes down that a statement may be another than its text, or may set another
// search path or role.
func (s savepoint) note(sql string, args []any) {
	if unseen(sql, args) {
		s.state.bypassed.Store(true)
	}
	if moves(sql) {
		s.state.moved.Store(true)
	}
}

// moves tells whether a statement may set another search path or role. It is a guess: a
// wrong yes costs a round trip, and a function that does so may say nothing of it.
func moves(sql string) bool {
	sql = strings.ToLower(sql)
	for _, word := range []string{"search_path", "role", "set_config", "reset"} {
		if strings.Contains(sql, word) {
			return true
		}
	}
	return false
}

// unseen tells whether a statement may be another than its text: the name of one
// that was prepared, or what a rewriter makes of it.
func unseen(sql string, args []any) bool {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.NamedArgs, pgx.StrictNamedArgs: // change names only
		case pgx.QueryRewriter:
			return true
		}
	}
	return !strings.ContainsAny(strings.TrimSpace(sql), " \t\r\n")
}

// failed is how pgx returns an error from every method.
func failed(err error) pgx.BatchResults { return pgx.FailedBatchResults(&pgx.Batch{}, err) }

func (s savepoint) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := s.refuse(); err != nil {
		return nil, err
	}
	tx, err := s.tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return savepoint{tx, s.state}, nil
}

func (s savepoint) Commit(ctx context.Context) error {
	if err := s.refuse(); err != nil {
		return err
	}
	return s.tx.Commit(ctx)
}

func (s savepoint) Rollback(ctx context.Context) error {
	if err := s.refuse(); err != nil {
		return err
	}
	return s.tx.Rollback(ctx)
}

// Conn returns the connection itself, which is not guarded.
func (s savepoint) Conn() *pgx.Conn {
	s.state.bypassed.Store(true)
	return s.tx.Conn()
}

// LargeObjects returns what works on the transaction as long as it is open.
func (s savepoint) LargeObjects() pgx.LargeObjects {
	s.state.large.Store(true)
	return s.tx.LargeObjects()
}

func (s savepoint) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := s.refuse(); err != nil {
		return 0, err
	}
	return s.tx.CopyFrom(ctx, table, columns, rows)
}

func (s savepoint) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	statements := make([]string, 0, b.Len())
	for _, q := range b.QueuedQueries {
		statements = append(statements, q.SQL)
	}
	if err := s.refuse(statements...); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	for _, q := range b.QueuedQueries {
		s.note(q.SQL, q.Arguments)
	}
	return s.tx.SendBatch(ctx, b)
}

func (s savepoint) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := s.refuse(sql); err != nil {
		return nil, err
	}
	return s.tx.Prepare(ctx, name, sql)
}

func (s savepoint) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := s.refuse(sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	s.note(sql, args)
	return s.tx.Exec(ctx, sql, args...)
}

func (s savepoint) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := s.refuse(sql); err != nil {
		return failed(err).Query()
	}
	s.note(sql, args)
	return s.tx.Query(ctx, sql, args...)
}

func (s savepoint) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := s.refuse(sql); err != nil {
		return failed(err).QueryRow()
	}
	s.note(sql, args)
	return s.tx.QueryRow(ctx, sql, args...)
}
