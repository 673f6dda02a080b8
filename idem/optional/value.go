package optional

import (
	"encoding/json"
	"reflect"
)

// Value is a field that may hold a T, be null, or be absent. The zero Value is
// absent. Values of a comparable T compare with ==.
//
// Give such a field the json tag omitzero, else an absent one is written as
// null.
type Value[T any] struct {
	v     T
	state state
}

type state uint8

const (
	absent state = iota
	null
	present
)

// Of returns a Value that holds v.
func Of[T any](v T) Value[T] { return Value[T]{v: v, state: present} }

// Null returns a Value that is null.
func Null[T any]() Value[T] { return Value[T]{state: null} }

// Get returns the value. ok is false for null and for absent.
func (v Value[T]) Get() (value T, ok bool) { return v.v, v.state == present }

// Or returns the value, and fallback for null and for absent.
func (v Value[T]) Or(fallback T) T {
	if v.state != present {
		return fallback
	}
	return v.v
}

// OrZero returns the value, and T's zero value for null and for absent. Switch on
// it where the difference does not matter:
//
//	switch e.Payment.ChargeType.OrZero() { case …
func (v Value[T]) OrZero() T {
	var zero T
	return v.Or(zero)
}

// Ptr returns a pointer to a copy of the value, and nil for null and for absent:
// for code that has pointers for columns that may be NULL.
func (v Value[T]) Ptr() *T {
	if v.state != present {
		return nil
	}
	return &v.v
}

// IsNull reports whether the field was sent as null.
func (v Value[T]) IsNull() bool { return v.state == null }

// IsZero reports whether the field was left out. A field that was sent is not
// zero, be it null, 0 or "". The json tag omitzero asks it.
func (v Value[T]) IsZero() bool { return v.state == absent }

// Equal reports whether both hold the same, are both null, or are both absent.
// go-cmp compares by it.
func (v Value[T]) Equal(w Value[T]) bool {
	return v.state == w.state && reflect.DeepEqual(v.v, w.v)
}

// MarshalJSON writes the value, or null.
func (v Value[T]) MarshalJSON() ([]byte, error) {
	if v.state != present {
		return []byte("null"), nil
	}
	return json.Marshal(&v.v) // a pointer, for a T with a MarshalJSON that wants one
}
