package value

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"
)

// Decimal is an exact decimal number of up to 18 digits: an amount, a rate.
// Equal numbers are equal with ==, however they were spelled: 10.0 == 10.00.
// The zero Decimal is 0.
//
// No float is ever involved. In a tx.Exec a Decimal is a numeric.
type Decimal struct {
	coef  int64 // the number is coef / 10^scale; no trailing zero where scale > 0
	scale uint8
}

// OfCents returns an amount of so many cents: OfCents(1050) is 10.50. It panics
// where the amount has more than 18 digits.
func OfCents(n int64) Decimal { return must(normalized(n, 2)) }

// Cents returns the number of cents that the amount is: 1050 for 10.50. It panics
// for an amount that has a fraction of a cent, and for more cents than fit an
// int64: [Decimal.Round] a calculated amount.
func (d Decimal) Cents() int64 {
	n, ok := scaled(d.coef, 2-min(d.scale, 2))
	if d.scale > 2 || !ok {
		panic("value: the number is not one of whole cents that fits an int64: round it, or store it as a numeric")
	}
	return n
}

// maxDigits keeps a coefficient inside an int64, with room for one addition.
const maxDigits = 18

var errRange = fmt.Errorf("value: the number has more than %d digits: a Decimal does not hold it", maxDigits)

// powers of ten that fit a coefficient.
var pow10 = func() (p [maxDigits + 1]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return cmp.Compare(d.coef, 0) }

// IsZero reports whether the number is 0.
func (d Decimal) IsZero() bool { return d.coef == 0 }

// Neg returns -d.
func (d Decimal) Neg() Decimal { return Decimal{-d.coef, d.scale} }

// Add returns d + e. It panics where the sum needs more than 18 digits, which
// no sum of amounts comes near.
func (d Decimal) Add(e Decimal) Decimal {
	scale := max(d.scale, e.scale)
	a, okA := scaled(d.coef, scale-d.scale)
	b, okB := scaled(e.coef, scale-e.scale)
	sum := a + b
	if overflow := (sum > a) != (b > 0); !okA || !okB || overflow {
		panic(errRange)
	}
	return must(normalized(sum, scale))
}

// Sub returns d - e. It panics where [Decimal.Add] does.
func (d Decimal) Sub(e Decimal) Decimal { return d.Add(e.Neg()) }

// Mul returns d * e, exactly: round a share of an amount with [Decimal.Round].
// It panics where the product needs more than 18 digits.
func (d Decimal) Mul(e Decimal) Decimal {
	high, low := bits.Mul64(magnitude(d.coef), magnitude(e.coef))
	scale := d.scale + e.scale
	for scale > 0 && (high > 0 || low >= uint64(pow10[maxDigits]) || scale > maxDigits) {
		quotientHigh, rest := high/10, high%10
		quotientLow, digit := bits.Div64(rest, low, 10)
		if digit != 0 {
			panic(errRange)
		}
		high, low = quotientHigh, quotientLow
		scale--
	}
	if high > 0 || low >= uint64(pow10[maxDigits]) {
		panic(errRange)
	}
	return must(normalized(int64(low)*int64(d.Sign()*e.Sign()), scale))
}

// Round returns the number with that many decimals at most: Round(2) is an
// amount in whole cents. A half is rounded away from zero, as Postgres does:
// 0.005 becomes 0.01. It panics for fewer than no decimals.
func (d Decimal) Round(decimals int) Decimal {
	if decimals < 0 {
		panic("value: a number is rounded to 0 decimals or more")
	}
	if int(d.scale) <= decimals {
		return d
	}
	unit := pow10[int(d.scale)-decimals]
	coef, rest := d.coef/unit, d.coef%unit
	if magnitude(rest) >= uint64(unit-unit/2) {
		coef += int64(d.Sign())
	}
	return must(normalized(coef, uint8(decimals)))
}

// Equal is ==, for go-cmp.
func (d Decimal) Equal(e Decimal) bool { return d == e }

// Cmp returns -1 if d < e, 0 if d == e, and 1 if d > e.
func (d Decimal) Cmp(e Decimal) int {
	if d.Sign() != e.Sign() {
		return cmp.Compare(d.Sign(), e.Sign())
	}
	// Brought to one scale, a coefficient may need 120 bits.
	scale := max(d.scale, e.scale)
	highD, lowD := bits.Mul64(magnitude(d.coef), uint64(pow10[scale-d.scale]))
	highE, lowE := bits.Mul64(magnitude(e.coef), uint64(pow10[scale-e.scale]))
	return d.Sign() * cmp.Or(cmp.Compare(highD, highE), cmp.Compare(lowD, lowE))
}

// String writes the number with two decimals, or with more where it has more:
// "10.50", "0.005". [ParseDecimal] reads it.
func (d Decimal) String() string { return string(d.append(nil)) }

func (d Decimal) append(b []byte) []byte {
	if d.coef < 0 {
		b = append(b, '-')
	}
	unit := uint64(pow10[d.scale])
	b = strconv.AppendUint(b, magnitude(d.coef)/unit, 10)
	b = append(b, '.')
	for fraction := magnitude(d.coef) % unit; unit > 1; fraction %= unit {
		unit /= 10
		b = append(b, '0'+byte(fraction/unit))
	}
	for places := d.scale; places < 2; places++ {
		b = append(b, '0')
	}
	return b
}

// normalized returns coef / 10^scale in the one form that equal numbers have.
func normalized(coef int64, scale uint8) (Decimal, error) {
	for scale > 0 && coef%10 == 0 {
		coef /= 10
		scale--
	}
	if magnitude(coef) >= uint64(pow10[maxDigits]) {
		return Decimal{}, errRange
	}
	return Decimal{coef, scale}, nil
}

// scaled returns coef * 10^places. ok is false if that does not fit.
func scaled(coef int64, places uint8) (n int64, ok bool) {
	if magnitude(coef) > uint64(math.MaxInt64/pow10[places]) {
		return 0, false
	}
	return coef * pow10[places], true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func must(d Decimal, err error) Decimal {
	if err != nil {
		panic(err)
	}
	return d
}

var errSyntax = errors.New("value: the text is not a number: write it as JSON does, such as -10.50 or 1e2")

// ParseDecimal reads a number in any spelling that JSON has: -3.5, 10.00, 1e2.
func ParseDecimal(s string) (Decimal, error) { return parseDecimal(s) }

// parseDecimal goes once through the digits, and allocates nothing.
func parseDecimal[T string | []byte](s T) (Decimal, error) {
	n, negative := 0, len(s) > 0 && s[0] == '-'
	if negative {
		n++
	}
	var c coefficient
	whole := n
	for n < len(s) && isDigit(s[n]) {
		c.add(s[n])
		n++
	}
	if n == whole || s[whole] == '0' && n > whole+1 {
		return Decimal{}, errSyntax
	}
	var exponent int64
	if n < len(s) && s[n] == '.' {
		point := n
		for n++; n < len(s) && isDigit(s[n]); n++ {
			c.add(s[n])
		}
		if n == point+1 {
			return Decimal{}, errSyntax
		}
		exponent = -int64(n - point - 1)
	}
	if n < len(s) {
		e, ok := parseExponent(s[n:])
		if !ok {
			return Decimal{}, errSyntax
		}
		exponent += e
	}
	return c.shifted(exponent, negative)
}

// coefficient is the digits of a number, without zeros at either end.
type coefficient struct {
	digits int64 // as far as they fit
	length int   // the number of digits
	zeros  int   // after them
}

func (c *coefficient) add(digit byte) {
	switch {
	case digit == '0' && c.length == 0:
	case digit == '0':
		c.zeros++
	default:
		if c.length += c.zeros + 1; c.length <= maxDigits {
			c.digits = c.digits*pow10[c.zeros+1] + int64(digit-'0')
		}
		c.zeros = 0
	}
}

// shifted is the number times 10^exponent.
func (c *coefficient) shifted(exponent int64, negative bool) (Decimal, error) {
	exponent += int64(c.zeros)
	d := Decimal{coef: c.digits}
	switch {
	case c.length == 0:
		return Decimal{}, nil
	case c.length > maxDigits, exponent < -maxDigits, exponent > int64(maxDigits-c.length):
		return Decimal{}, errRange
	case exponent > 0:
		d.coef *= pow10[exponent]
	default:
		d.scale = uint8(-exponent)
	}
	if negative {
		d.coef = -d.coef
	}
	return d, nil
}

// parseExponent reads e2, E+2 or e-2.
func parseExponent[T string | []byte](s T) (exponent int64, ok bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := len(s) > 0 && s[0] == '-'
	if negative || len(s) > 0 && s[0] == '+' {
		s = s[1:]
	}
	for n := range len(s) {
		if !isDigit(s[n]) {
			return 0, false
		}
		exponent = min(exponent*10+int64(s[n]-'0'), 1<<40) // longer than any text
	}
	if negative {
		exponent = -exponent
	}
	return exponent, len(s) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// UnmarshalJSON reads a JSON number, or one inside a string. null changes
// nothing. A number of more than 18 digits is an error.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	n, err := parseDecimal(unquoted(data))
	if err != nil {
		return cannotDecode[Decimal](data, err)
	}
	*d = n
	return nil
}

// MarshalJSON writes a JSON number as [Decimal.String] does.
func (d Decimal) MarshalJSON() ([]byte, error) { return d.append(nil), nil }

// Scan implements [database/sql.Scanner], for numeric, integer and text columns. NULL
// is an error: scan into a value.Optional[Decimal], or a pointer.
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
		return fmt.Errorf("value: a %T is not scanned into a Decimal: select a numeric that is not NULL", src)
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
		return errors.New("value: NULL is not scanned into a Decimal: scan into a value.Optional[value.Decimal]")
	}
	text, err := n.Value() // a text, also for NaN and infinities
	if err != nil {
		return err
	}
	return d.Scan(text)
}
