package scalar

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5/pgtype"
)

// Scan implements [database/sql.Scanner], for numeric, integer and text columns. NULL
// is an error: scan into an optional.Value[Decimal], or a pointer.
func (d *Decimal) Scan(src any) error {
	var text string
	switch src := src.(type) {
	case string:
		text = src
	case []byte:
		text = string(src)
	case int64:
		text = fmt.Sprint(src)
	default:
		return fmt.Errorf("scalar: a %T is not scanned into a Decimal: select a numeric that is not NULL", src)
	}
	n, err := ParseDecimal(text)
	if err != nil {
		return err
	}
	*d = n
	return nil
}

// Value implements [driver.Valuer]: a text that Postgres takes as an exact
// numeric. For a bigint column use [Decimal.Cents].
func (d Decimal) Value() (driver.Value, error) { return d.String(), nil }

// NumericValue implements [pgtype.NumericValuer]: a numeric with two decimals,
// or with more where it has more.
func (d Decimal) NumericValue() (pgtype.Numeric, error) {
	n := big.NewInt(d.coef)
	for scale := d.scale; scale < 2; scale++ {
		n.Mul(n, big.NewInt(10))
	}
	return pgtype.Numeric{Int: n, Exp: -int32(max(d.scale, 2)), Valid: true}, nil
}

// ScanNumeric implements [pgtype.NumericScanner]. NULL is an error, as in Scan.
func (d *Decimal) ScanNumeric(n pgtype.Numeric) error {
	if !n.Valid {
		return errors.New("scalar: NULL is not scanned into a Decimal: scan into an optional.Value[scalar.Decimal]")
	}
	text, err := n.Value() // a text, NaN and infinities too
	if err != nil {
		return err
	}
	return d.Scan(text)
}
