package scalar

import (
	"encoding/json"
	"errors"
	"reflect"
)

var errFraction = errors.New("scalar: the number has a fraction: an Int does not hold it")

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
