//go:build go1.27 && goexperiment.jsonv2

package value

import (
	"encoding"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"reflect"
	"strings"
)

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later, which reads the values
// inside of an object or a list once and not once for each level.
func (v *Optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*v = Optional[T]{}
	if d.PeekKind() == jsontext.KindNull {
		if err := d.SkipValue(); err != nil {
			return err
		}
		v.state = null
		return nil
	}
	if err := decodeFrom(d, &v.v); err != nil {
		return err
	}
	v.state = present
	return nil
}

// decodeFrom is json.UnmarshalDecode with short cuts for the values of most fields.
func decodeFrom(d *jsontext.Decoder, into any) error {
	switch into := into.(type) {
	case *string:
		if d.PeekKind() == jsontext.KindString {
			token, err := d.ReadToken()
			if err == nil {
				*into = token.String()
			}
			return err
		}
	case json.UnmarshalerFrom:
		return into.UnmarshalJSONFrom(d)
	case jsonv1.Unmarshaler, encoding.TextUnmarshaler:
	default:
		if field := reflect.ValueOf(into).Elem(); field.Kind() == reflect.String && d.PeekKind() == jsontext.KindString {
			token, err := d.ReadToken()
			if err == nil {
				field.SetString(token.String())
			}
			return err
		}
	}
	return json.UnmarshalDecode(d, into)
}

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (d *Decimal) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decodeNext(in, d) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (n *Int) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decodeNext(in, n) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (t *Text) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decodeNext(in, t) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (p *Percent) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decodeNext(in, p) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (c *Cents) UnmarshalJSONFrom(in *jsontext.Decoder) error { return decodeNext(in, c) }

// decodeNext decodes the next value into v. Since Go 1.27 encoding/json does not complete an
// UnmarshalTypeError of an UnmarshalJSON with the path of the field; this does.
func decodeNext(d *jsontext.Decoder, v jsonv1.Unmarshaler) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if err = v.UnmarshalJSON(value); err == nil {
		return nil
	}
	var typeError *jsonv1.UnmarshalTypeError
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
