package value

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"unicode/utf8"
)

// Optional is a field that may hold a T, be null, or be absent. The zero Optional is
// absent. Optionals of a comparable T compare with ==.
//
// Give such a field the json tag omitzero, else an absent one is written as
// null.
type Optional[T any] struct {
	v     T
	state state
}

type state uint8

const (
	absent state = iota
	null
	present
)

// Of returns an Optional that holds v.
func Of[T any](v T) Optional[T] { return Optional[T]{v: v, state: present} }

// Null returns an Optional that is null.
func Null[T any]() Optional[T] { return Optional[T]{state: null} }

// Get returns the value. ok is false for null and for absent.
func (v Optional[T]) Get() (value T, ok bool) { return v.v, v.state == present }

// Or returns the value, and fallback for null and for absent.
func (v Optional[T]) Or(fallback T) T {
	if v.state != present {
		return fallback
	}
	return v.v
}

// OrZero returns the value, and T's zero value for null and for absent. Switch on
// it where the difference does not matter:
//
//	switch e.Payment.ChargeType.OrZero() { case …
func (v Optional[T]) OrZero() T {
	var zero T
	return v.Or(zero)
}

// Ptr returns a pointer to a copy of the value, and nil for null and for absent:
// for code that has pointers for columns that may be NULL.
func (v Optional[T]) Ptr() *T {
	if v.state != present {
		return nil
	}
	return &v.v
}

// IsNull reports whether the field was sent as null.
func (v Optional[T]) IsNull() bool { return v.state == null }

// IsZero reports whether the field was left out. A field that was sent is not
// zero, be it null, 0 or "". The json tag omitzero asks it.
func (v Optional[T]) IsZero() bool { return v.state == absent }

// Equal reports whether both hold the same, are both null, or are both absent.
// go-cmp compares by it.
func (v Optional[T]) Equal(w Optional[T]) bool {
	return v.state == w.state && reflect.DeepEqual(v.v, w.v)
}

// MarshalJSON writes the value, or null.
func (v Optional[T]) MarshalJSON() ([]byte, error) {
	if v.state != present {
		return []byte("null"), nil
	}
	return json.Marshal(&v.v) // a pointer, for a T with a MarshalJSON that wants one
}

// UnmarshalJSON reads null or a T. encoding/json does not call it for a field
// that is absent.
func (v *Optional[T]) UnmarshalJSON(data []byte) error {
	*v = Optional[T]{}
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

// String returns fmt.Sprint of the value, and "<nil>" for null and for absent.
func (v Optional[T]) String() string { return fmt.Sprint(v) }

// Format implements [fmt.Formatter]: an Optional prints as its value, with any
// verb that T has, and as <nil> for null and for absent. %#v distinguishes the two.
func (v Optional[T]) Format(f fmt.State, verb rune) {
	switch goSyntax := verb == 'v' && f.Flag('#'); {
	case v.state == present && goSyntax:
		fmt.Fprintf(f, "value.Of(%#v)", v.v)
	case v.state == present:
		fmt.Fprintf(f, fmt.FormatString(f, verb), v.v)
	case v.state == null && goSyntax:
		fmt.Fprintf(f, "value.Null[%T]()", v.v)
	case goSyntax:
		fmt.Fprintf(f, "value.Optional[%T]{}", v.v)
	default:
		fmt.Fprint(f, "<nil>")
	}
}

// LogValue implements [slog.LogValuer]: an Optional is logged as its value, and
// as nil for null and for absent.
func (v Optional[T]) LogValue() slog.Value {
	if v.state != present {
		return slog.AnyValue(nil)
	}
	return slog.AnyValue(v.v)
}

// Value implements [driver.Valuer], so that a Value can be an argument of
// tx.Exec: it is NULL when it holds nothing, else the result of T's own Value method
// if there is one, else the basic value of T (a string, a number, a boolean). A T that is
// a struct or a slice without that method is an error: pass its fields.
func (v Optional[T]) Value() (driver.Value, error) {
	if v.state != present {
		return nil, nil
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(v.v)
	if err != nil {
		return nil, fmt.Errorf("value: %T is not a column's value, pass one of its fields: %w", v.v, err)
	}
	return value, nil
}

// Scan implements [sql.Scanner]. NULL is null, never absent. Anything else is
// read by T's own Scan method, or else as database/sql reads it into a T.
func (v *Optional[T]) Scan(src any) error {
	var column sql.Null[T]
	if err := column.Scan(src); err != nil {
		return fmt.Errorf("value: the column does not fit a %T: %w", column.V, err)
	}
	*v = Null[T]()
	if column.Valid {
		*v = Of(column.V)
	}
	return nil
}
