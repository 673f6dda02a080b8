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

// Get returns what the Value holds. ok is false for null and for absent.
func (v Value[T]) Get() (value T, ok bool) { return v.v, v.state == present }

// Or returns what the Value holds, and fallback for null and for absent.
func (v Value[T]) Or(fallback T) T {
	if v.state != present {
		return fallback
	}
	return v.v
}

// OrZero returns what the Value holds, and T's zero value for null and for
// absent. Switch on it where the difference does not matter:
//
//	switch e.Payment.ChargeType.OrZero() { case …
func (v Value[T]) OrZero() T {
	var zero T
	return v.Or(zero)
}

// Ptr returns a pointer to a copy of what the Value holds, and nil for null and
// for absent: for code that has pointers for what may be NULL.
func (v Value[T]) Ptr() *T {
	if v.state != present {
		return nil
	}
	return &v.v
}

// IsNull tells whether the field was sent as null.
func (v Value[T]) IsNull() bool { return v.state == null }

// IsZero tells whether the field was left out. A field that was sent is not
// zero, be it null, 0 or "". The json tag omitzero asks it.
func (v Value[T]) IsZero() bool { return v.state == absent }

// Equal tells whether both hold the same, are both null, or are both absent.
// It is what go-cmp compares by.
func (v Value[T]) Equal(w Value[T]) bool {
	return v.state == w.state && reflect.DeepEqual(v.v, w.v)
}

// MarshalJSON writes what the Value holds, or null.
func (v Value[T]) MarshalJSON() ([]byte, error) {
	if v.state != present {
		return []byte("null"), nil
	}
	return json.Marshal(&v.v) // a pointer, for a T whose MarshalJSON wants one
}
