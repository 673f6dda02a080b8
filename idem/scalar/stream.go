//go:build go1.27 && goexperiment.jsonv2

package scalar

import (
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"strings"
)

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (d *Decimal) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decode(in, d) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (n *Int) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decode(in, n) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (t *Text) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decode(in, t) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (p *Percent) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decode(in, p) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (c *Cents) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decode(in, c) }

// decode decodes the next value into v. Since Go 1.27 encoding/json does not complete an
// UnmarshalTypeError of an UnmarshalJSON with the path of the field; this does.
func decode(d *jsontext.Decoder, v json.Unmarshaler) error {
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
