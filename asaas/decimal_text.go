package asaas

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

var (
	errSyntax = errors.New("asaas: the text is not a number: write it as JSON does, such as -10.50 or 1e2")
	errRange  = fmt.Errorf("asaas: the number has more than %d digits: a Decimal does not hold it", maxDigits)
)

// ParseDecimal reads a number in any spelling that JSON has: -3.5, 10.00, 1e2.
func ParseDecimal(s string) (Decimal, error) {
	s, negative := strings.CutPrefix(s, "-")
	mantissa, exponent, ok := cutExponent(s)
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !ok || !isInteger(whole) || point && !isDigits(fraction) {
		return Decimal{}, errSyntax
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(trimmed) - len(fraction))
	d, err := shifted(trimmed, exponent)
	if negative {
		d = d.Neg()
	}
	return d, err
}

// shifted is digits * 10^exponent. digits neither begin nor end with a zero.
func shifted(digits string, exponent int64) (Decimal, error) {
	var d Decimal
	switch n := len(digits); {
	case n == 0:
		return d, nil
	case n > maxDigits, exponent < -maxDigits, exponent > int64(maxDigits-n):
		return d, errRange
	}
	for _, digit := range digits {
		d.coef = d.coef*10 + int64(digit-'0')
	}
	if exponent > 0 {
		d.coef *= pow10[exponent]
	} else {
		d.scale = uint8(-exponent)
	}
	return d, nil
}

// cutExponent separates the exponent from what is before it.
func cutExponent(s string) (mantissa string, exponent int64, ok bool) {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return s, 0, true
	}
	mantissa, digits := s[:i], s[i+1:]
	negative := strings.HasPrefix(digits, "-")
	if negative || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	for _, digit := range []byte(digits) {
		exponent = min(exponent*10+int64(digit-'0'), 1<<40) // longer than any text
	}
	if negative {
		exponent = -exponent
	}
	return mantissa, exponent, isDigits(digits)
}

func isInteger(s string) bool { return isDigits(s) && (s[0] != '0' || len(s) == 1) }

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// UnmarshalJSON reads a JSON number, or one inside a string. null changes
// nothing. A number of more than 18 digits is an error.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	n, err := ParseDecimal(unquoted(data))
	if err != nil {
		return cannotDecode[Decimal](data, err)
	}
	*d = n
	return nil
}

// MarshalJSON writes a JSON number as [Decimal.String] does.
func (d Decimal) MarshalJSON() ([]byte, error) { return d.append(nil), nil }

// Scan implements [sql.Scanner], for numeric, integer and text columns. NULL
// is an error: scan into a pointer, or into a sql.Null[Decimal].
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
		return fmt.Errorf("asaas: a %T is not scanned into a Decimal: select a numeric that is not NULL", src)
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
