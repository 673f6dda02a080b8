package scalar

import (
	"encoding/json"
	"errors"
	"reflect"
)

// Int is a whole number. It decodes from every spelling of one: 5, 5.00, 0.0,
// 1e2, "5". A number with a fraction is an error.
type Int int64

var errFraction = errors.New("scalar: the number has a fraction: an Int does not hold it")

// UnmarshalJSON reads a JSON number, or one inside a string. null changes
// nothing.
func (n *Int) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	d, err := parseDecimal(unquoted(data))
	if err == nil && d.scale > 0 {
		err = errFraction
	}
	if err != nil {
		return cannotDecode[Int](data, err)
	}
	*n = Int(d.coef)
	return nil
}

// unquoted is a JSON number as it is, and a JSON string without its quotes.
func unquoted(data []byte) []byte {
	if n := len(data); n > 1 && data[0] == '"' && data[n-1] == '"' {
		return data[1 : n-1]
	}
	return data
}

// cannotDecode is encoding/json's own error type: encoding/json completes it
// with the path of the field.
func cannotDecode[T any](data []byte, why error) error {
	return &json.UnmarshalTypeError{Value: described(data, why), Type: reflect.TypeFor[T]()}
}

// described says what was sent, without saying what it was: it may be personal.
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
