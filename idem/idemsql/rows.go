package idemsql

import (
	"database/sql/driver"
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

// formats asks for values in binary where their text depends on settings, and where
// pgx reads binary faster. All others come as text, which database/sql can scan.
var formats = pgx.QueryResultFormatsByOID{
	pgtype.BoolOID:        pgx.BinaryFormatCode,
	pgtype.ByteaOID:       pgx.BinaryFormatCode,
	pgtype.DateOID:        pgx.BinaryFormatCode,
	pgtype.TimestampOID:   pgx.BinaryFormatCode,
	pgtype.TimestamptzOID: pgx.BinaryFormatCode,
	pgtype.Int2OID:        pgx.BinaryFormatCode,
	pgtype.Int4OID:        pgx.BinaryFormatCode,
	pgtype.Int8OID:        pgx.BinaryFormatCode,
	pgtype.Float4OID:      pgx.BinaryFormatCode,
	pgtype.Float8OID:      pgx.BinaryFormatCode,
	pgtype.CIDOID:         pgx.BinaryFormatCode,
	pgtype.OIDOID:         pgx.BinaryFormatCode,
	pgtype.XIDOID:         pgx.BinaryFormatCode,
}

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

// typeOf returns how database/sql shows a type of Postgres, as package stdlib of pgx does.
func typeOf(types *pgtype.Map, oid uint32) columnType {
	t := columnType{strconv.FormatUint(uint64(oid), 10), reflect.TypeFor[string]()}
	if known, ok := types.TypeForOID(oid); ok {
		t.name = strings.ToUpper(known.Name)
	}
	switch oid {
	case pgtype.Float8OID, pgtype.NumericOID:
		t.scan = reflect.TypeFor[float64]()
	case pgtype.Float4OID:
		t.scan = reflect.TypeFor[float32]()
	case pgtype.Int8OID:
		t.scan = reflect.TypeFor[int64]()
	case pgtype.Int4OID:
		t.scan = reflect.TypeFor[int32]()
	case pgtype.Int2OID:
		t.scan = reflect.TypeFor[int16]()
	case pgtype.BoolOID:
		t.scan = reflect.TypeFor[bool]()
	case pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID:
		t.scan = reflect.TypeFor[time.Time]()
	case pgtype.ByteaOID:
		t.scan = reflect.TypeFor[[]byte]()
	}
	return t
}
