package idemsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
)

var _ interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
} = (*conn)(nil)

func (c *conn) Close() error { return nil }

// CheckNamedValue leaves values to pgx, which knows Valuers and the types of Postgres.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if v.Name != "" {
		return ErrNamedArgs
	}
	return nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	var affected int64
	err := c.bridge.use(c, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, query, values(args)...)
		affected = tag.RowsAffected()
		return err
	})
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(affected), nil
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	var all *rows
	err := c.bridge.use(c, func(tx pgx.Tx) (err error) {
		found, _ := tx.Query(ctx, query, append([]any{formats}, values(args)...)...)
		all, err = read(found)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func values(args []driver.NamedValue) []any {
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a.Value
	}
	return all
}

// Prepare makes a conn a [driver.Conn]. Nothing is prepared: pgx does that, as the
// pool's settings say, and names no statement that would stay behind.
func (c *conn) Prepare(query string) (driver.Stmt, error) { return &statement{c, query}, nil }

func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return c.Prepare(query)
}

// Begin makes a conn a [driver.Conn].
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(c.bridge.ctx, driver.TxOptions{})
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly || opts.Isolation != driver.IsolationLevel(sql.LevelDefault) {
		return nil, ErrIsolation
	}
	if err := c.bridge.begin(ctx, c); err != nil {
		return nil, err
	}
	return transaction{c, ctx}, nil
}

// transaction is one that BeginTx began with ctx.
type transaction struct {
	conn *conn
	ctx  context.Context
}

func (t transaction) Commit() error   { return t.conn.bridge.commit(t.conn) }
func (t transaction) Rollback() error { return t.conn.bridge.rollback(t.conn, t.ctx) }

// statement is a statement's text.
type statement struct {
	conn *conn
	sql  string
}

var _ interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
} = (*statement)(nil)

func (s *statement) Close() error  { return nil }
func (s *statement) NumInput() int { return -1 } // Postgres counts

func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.sql, args)
}

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.sql, args)
}

var errOld = errors.New("idemsql: the statement needs a context")

// Exec makes a statement a [driver.Stmt]. Package database/sql does not call it.
func (s *statement) Exec([]driver.Value) (driver.Result, error) { return nil, errOld }

// Query makes a statement a [driver.Stmt]. Package database/sql does not call it.
func (s *statement) Query([]driver.Value) (driver.Rows, error) { return nil, errOld }
