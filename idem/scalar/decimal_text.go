package scalar

import (
	"errors"
)

var errSyntax = errors.New("scalar: the text is not a number: write it as JSON does, such as -10.50 or 1e2")

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
	length int   // how many there are
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
