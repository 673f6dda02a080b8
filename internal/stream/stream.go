//go:build go1.27 && goexperiment.jsonv2

// Package stream lets a type that decodes itself from bytes decode itself from
// a stream, where the Go version has one.
package stream

import (
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"strings"
)

// Into decodes the next value. Since Go 1.27 encoding/json does not complete an
// UnmarshalTypeError of an UnmarshalJSON with the path of the field; this does.
func Into(d *jsontext.Decoder, v json.Unmarshaler) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if err = v.UnmarshalJSON(value); err == nil {
		return nil
	}
	var typeError *json.UnmarshalTypeError
	if errors.As(err, &typeError) && d.StackDepth() > 0 {
		typeError.Struct, typeError.Field = "body", path(d)
	}
	return err
}

// path is the decoder's position in the body, payment.refunds.value for example:
// without the numbers of elements, as before Go 1.27.
func path(d *jsontext.Decoder) string {
	var names []string
	level := 0
	for name := range d.StackPointer().Tokens() {
		level++
		if kind, _ := d.StackIndex(level); kind == jsontext.KindBeginObject {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}
