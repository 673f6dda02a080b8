//go:build go1.27 && goexperiment.jsonv2

package optional

import (
	"encoding"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"reflect"
)

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later, which reads the values
// inside of an object or a list once and not once for each level.
func (v *Value[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*v = Value[T]{}
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
