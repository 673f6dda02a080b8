package optional

import (
	"encoding"
	"encoding/json"
	"reflect"
	"unicode/utf8"
)

// UnmarshalJSON reads null or a T. encoding/json does not call it for a field
// that is absent.
func (v *Value[T]) UnmarshalJSON(data []byte) error {
	*v = Value[T]{}
	if string(data) == "null" {
		v.state = null
		return nil
	}
	if err := decode(data, &v.v); err != nil {
		// Returned as it is: encoding/json completes the path of its own errors.
		return err
	}
	v.state = present
	return nil
}

// decode is json.Unmarshal with short cuts for the values of most fields.
func decode(data []byte, into any) error {
	switch into := into.(type) {
	case *string: // most fields
		if plain(data) {
			*into = string(data[1 : len(data)-1])
			return nil
		}
	case *bool:
		if isBool(data) {
			*into = data[0] == 't'
			return nil
		}
	case json.Unmarshaler:
		return into.UnmarshalJSON(data)
	case encoding.TextUnmarshaler:
	default:
		if field := reflect.ValueOf(into).Elem(); field.Kind() == reflect.String && plain(data) {
			field.SetString(string(data[1 : len(data)-1]))
			return nil
		}
	}
	return json.Unmarshal(data, into)
}

func isBool(data []byte) bool { return string(data) == "true" || string(data) == "false" }

// plain reports whether data is a JSON string that stands for the very bytes
// between its quotes.
func plain(data []byte) bool {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return false
	}
	for _, c := range data[1 : len(data)-1] {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
