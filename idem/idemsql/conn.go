package idemsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

var _ interface {
	driver.Conn
	driver.ConnBeginTx
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

// scanTypes are the types of Go that database/sql shows for those of Postgres, as package stdlib of pgx does. All others
// are a string.
var scanTypes = map[uint32]reflect.Type{
	pgtype.BoolOID:        reflect.TypeFor[bool](),
	pgtype.ByteaOID:       reflect.TypeFor[[]byte](),
	pgtype.DateOID:        reflect.TypeFor[time.Time](),
	pgtype.TimestampOID:   reflect.TypeFor[time.Time](),
	pgtype.TimestamptzOID: reflect.TypeFor[time.Time](),
	pgtype.Int2OID:        reflect.TypeFor[int16](),
	pgtype.Int4OID:        reflect.TypeFor[int32](),
	pgtype.Int8OID:        reflect.TypeFor[int64](),
	pgtype.Float4OID:      reflect.TypeFor[float32](),
	pgtype.Float8OID:      reflect.TypeFor[float64](),
	pgtype.NumericOID:     reflect.TypeFor[float64](),
}

// formats asks for these in binary, because the text of some depends on settings. A numeric keeps its digits
// as text, and all others come as text, which database/sql can scan.
var formats = func() pgx.QueryResultFormatsByOID {
	all := pgx.QueryResultFormatsByOID{}
	for oid := range scanTypes {
		all[oid] = pgx.BinaryFormatCode
	}
	delete(all, pgtype.NumericOID)
	return all
}()

// rows are the rows of a query, all read: so that another statement can be executed
// before the last row is scanned, and rows that are never closed hold no connection.
type rows struct {
	columns []string
	types   []columnType
	rest    [][]driver.Value
}

var _ interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeScanType
} = (*rows)(nil)

type columnType struct {
	name string
	scan reflect.Type
}

// read reads all rows of a query, and closes it.
func read(found pgx.Rows) (*rows, error) {
	defer found.Close()
	r := &rows{}
	for found.Next() {
		row, err := decode(found.Conn().TypeMap(), found.FieldDescriptions(), found.RawValues())
		if err != nil {
			return nil, err
		}
		r.rest = append(r.rest, row)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	for _, f := range found.FieldDescriptions() {
		r.columns = append(r.columns, f.Name)
		r.types = append(r.types, typeOf(found.Conn().TypeMap(), f.DataTypeOID))
	}
	return r, nil
}

// decode returns a row's values as package database/sql knows them.
func decode(types *pgtype.Map, fields []pgconn.FieldDescription, raw [][]byte) ([]driver.Value, error) {
	row := make([]driver.Value, len(raw))
	for i, f := range fields {
		switch t, known := types.TypeForOID(f.DataTypeOID); {
		case raw[i] == nil:
		case known:
			value, err := t.Codec.DecodeDatabaseSQLValue(types, f.DataTypeOID, f.Format, raw[i])
			if err != nil {
				return nil, fmt.Errorf("idemsql: column %q cannot be read: %w", f.Name, err)
			}
			row[i] = value
		case f.Format == pgx.TextFormatCode:
			row[i] = string(raw[i])
		default:
			row[i] = append([]byte{}, raw[i]...)
		}
	}
	return row, nil
}

func (r *rows) Columns() []string { return r.columns }

func (r *rows) Close() error {
	r.rest = nil
	return nil
}

func (r *rows) Next(dest []driver.Value) error {
	if len(r.rest) == 0 {
		return io.EOF
	}
	copy(dest, r.rest[0])
	r.rest = r.rest[1:]
	return nil
}

func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i].name }
func (r *rows) ColumnTypeScanType(i int) reflect.Type   { return r.types[i].scan }

// typeOf returns how database/sql shows a type of Postgres.
func typeOf(types *pgtype.Map, oid uint32) columnType {
	t := columnType{strconv.FormatUint(uint64(oid), 10), reflect.TypeFor[string]()}
	if known, ok := types.TypeForOID(oid); ok {
		t.name = strings.ToUpper(known.Name)
	}
	if scan, ok := scanTypes[oid]; ok {
		t.scan = scan
	}
	return t
}
