package scalar

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Cents is an amount of money in the smallest unit of its currency: 1500 is
// 15.00 USD. It is never a float and never rounded.
//
// It is sent as a JSON number. Decoding takes 1500.0 and "1500" as well, and
// refuses a fraction of a cent.
type Cents int64

// notCents is encoding/json's own error type: encoding/json completes it with
// the path of the field.
func notCents() error {
	return &json.UnmarshalTypeError{Value: "what is no whole number of cents", Type: reflect.TypeFor[Cents]()}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Cents) UnmarshalJSON(data []byte) error {
	s := string(data)
	if s == "null" {
		return nil // as encoding/json does for numbers
	}
	if len(s) > 1 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" {
		return notCents()
	}
	*c = Cents(n)
	return nil
}
