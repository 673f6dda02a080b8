package value

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"
)

// Int is a whole number. It decodes from every spelling of one: 5, 5.00, 0.0,
// 1e2, "5". A number with a fraction is an error.
type Int int64

// UnmarshalJSON reads a JSON number, or one inside a string. null changes
// nothing.
func (n *Int) UnmarshalJSON(data []byte) error { return readWhole(n, data) }

// Cents is an amount of money in the smallest unit of its currency: 1500 is
// 15.00 USD. It is never a float and never rounded.
//
// It is sent as a JSON number. It decodes from every spelling of a whole number that an [Int] does,
// and refuses a fraction of a cent.
type Cents int64

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Cents) UnmarshalJSON(data []byte) error { return readWhole(c, data) }

func readWhole[T Int | Cents](into *T, data []byte) error {
	if string(data) == "null" {
		return nil // as encoding/json does for numbers
	}
	d, err := parseDecimal(unquoted(data))
	if err == nil && d.scale > 0 {
		err = errFraction
	}
	if err != nil {
		return cannotDecode[T](data, err)
	}
	*into = T(d.coef)
	return nil
}

// Percent is a percentage: 2.5 is 2.5 %. It is no amount, and cannot be added to
// one: [Percent.Of] takes it of one.
type Percent struct{ n Decimal }

// PercentOf makes a percentage of a number: 2.5 is 2.5 %.
func PercentOf(n Decimal) Percent { return Percent{n} }

// Of returns that part of an amount, exactly: round it with [Decimal.Round]. It
// panics where [Decimal.Mul] does.
func (p Percent) Of(amount Decimal) Decimal {
	return amount.Mul(p.n).Mul(Decimal{coef: 1, scale: 2})
}

// Decimal returns the number: 2.5 for 2.5 %.
func (p Percent) Decimal() Decimal { return p.n }

// IsZero reports whether it is 0 %.
func (p Percent) IsZero() bool { return p.n.IsZero() }

// Equal is ==, for go-cmp.
func (p Percent) Equal(q Percent) bool { return p == q }

// String writes the number without a sign: "2.50".
func (p Percent) String() string { return p.n.String() }

// UnmarshalJSON reads the spellings of a [Decimal].
func (p *Percent) UnmarshalJSON(data []byte) error { return p.n.UnmarshalJSON(data) }

// MarshalJSON writes a JSON number.
func (p Percent) MarshalJSON() ([]byte, error) { return p.n.MarshalJSON() }

// Scan implements [database/sql.Scanner], as [Decimal.Scan] does.
func (p *Percent) Scan(src any) error { return p.n.Scan(src) }

// Value implements [driver.Valuer]: a numeric.
func (p Percent) Value() (driver.Value, error) { return p.n.Value() }

// NumericValue implements [pgtype.NumericValuer].
func (p Percent) NumericValue() (pgtype.Numeric, error) { return p.n.NumericValue() }

// ScanNumeric implements [pgtype.NumericScanner].
func (p *Percent) ScanNumeric(n pgtype.Numeric) error { return p.n.ScanNumeric(n) }

// Text is a text that a provider sometimes sends as a number: the id of a bill, the
// number of a bank. It decodes from both, and keeps a number as it was written.
// Zeros in front are gone from a text that was sent as a number.
type Text string

// UnmarshalJSON reads a JSON string or a number. null changes nothing.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && (data[0] == '-' || isDigit(data[0])) && json.Valid(data) {
		*t = Text(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

var errFraction = errors.New("value: the number has a fraction")

// unquoted returns a JSON string without its quotes, and other JSON as it is.
func unquoted(data []byte) []byte {
	if n := len(data); n > 1 && data[0] == '"' && data[n-1] == '"' {
		return data[1 : n-1]
	}
	return data
}

// cannotDecode returns encoding/json's own type of error, to which encoding/json adds the path of the
// field.
func cannotDecode[T any](data []byte, why error) error {
	return &json.UnmarshalTypeError{Value: described(data, why), Type: reflect.TypeFor[T]()}
}

// described describes the value that was sent, without the value: it may be personal.
func described(data []byte, why error) string {
	switch {
	case errors.Is(why, errRange):
		return "number of more than 18 digits"
	case errors.Is(why, errFraction):
		return "number with a fraction"
	case len(data) == 0:
		return "nothing"
	}
	switch data[0] {
	case '"':
		return "string that is not a number"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	}
	return "text that is not a number"
}
